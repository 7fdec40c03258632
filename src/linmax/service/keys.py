"""Keys and what they allow. Only their SHA-256 hashes are stored; a key has 256 random bits, so it cannot be guessed.

The keys of a data folder are in ``keys.json``, which the running service reads again when it changes. As long as there
has never been a key, everything is allowed, and the service listens on this machine only. The file ``closed`` says that
there has been one: from then on nothing is allowed without a key, whatever becomes of ``keys.json``.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import json
import logging
import os
import secrets
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from linmax.service.folder import flush_folder, give_to_owner
from linmax.service.schemas import Refusal

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

__all__ = ["SCOPES", "Gate", "Key", "KeyFile"]

logger = logging.getLogger("linmax.service")

SCOPES = ("predict", "learn", "admin")
KEY_PREFIX = "lmx_"
RELOAD_SECONDS = 1.0
CLOSED = """There have been keys here, so that nothing is allowed without one.
To open the service to this machine again, stop it, and delete this file and keys.json.
"""


class Key(msgspec.Struct, kw_only=True):
    """One key: its hash and what it may do."""

    name: str
    sha256: str
    scopes: list[str]
    rate: float | None = None  # trials per second
    created: int = 0
    revoked: int | None = None


class _KeyTable(msgspec.Struct):
    """The content of the file; without its checksum a flipped bit could give a key more than it had."""

    keys: list[Key]
    sha256: str


class KeyFile:
    """The keys of one data folder."""

    def __init__(self, folder: Path) -> None:
        self.path, self.closed = folder / "keys.json", folder / "closed"

    def read(self) -> list[Key] | None:
        """Return all keys, revoked ones too; None if there has never been one."""
        try:
            table = msgspec.json.decode(self.path.read_bytes(), type=_KeyTable)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise ValueError(f"{self.path} cannot be read: {error.strerror}; it must belong to this user") from None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"{self.path} cannot be read: {error}; restore it from a copy") from None
        if table.sha256 != _digest(str(table.keys)):
            raise ValueError(f"{self.path} is damaged; restore it from a copy")
        return table.keys

    def add(self, name: str, scopes: list[str], rate: float | None = None) -> str:
        """Add a key; return its text, which is not stored."""
        self.close()
        text = KEY_PREFIX + base64.urlsafe_b64encode(secrets.token_bytes(32)).decode().rstrip("=")
        with self._alone():
            keys = self.read() or []
            if any(key.name == name and key.revoked is None for key in keys):
                raise ValueError(f"a key called {name!r} exists; revoke it or choose another name")
            keys.append(Key(name=name, sha256=_digest(text), scopes=scopes, rate=rate, created=int(time.time())))
            self._write(keys)
        return text

    def close(self) -> None:
        """Note that there are keys, for ever."""
        if not self.closed.exists():
            self.closed.write_text(CLOSED)
            give_to_owner(self.closed, self.closed.parent)

    def revoke(self, name: str) -> None:
        """Revoke the key of this name."""
        with self._alone():
            keys = self.read() or []
            found = [key for key in keys if key.name == name and key.revoked is None]
            if not found:
                known = ", ".join(key.name for key in keys if key.revoked is None) or "none"
                raise ValueError(f"no key is called {name!r}; there are: {known}")
            found[0].revoked = int(time.time())
            self._write(keys)

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Wait for other processes that change the keys, so that no key is lost and none comes back."""
        lock = self.path.with_name(".keys.lock")
        with lock.open("a") as file:
            give_to_owner(lock, lock.parent)
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _write(self, keys: list[Key]) -> None:
        """Replace the file atomically, readable by its owner alone; a revoked key is revoked for good."""
        handle, temporary = tempfile.mkstemp(dir=self.path.parent, prefix=".keys.")
        with os.fdopen(handle, "w") as file:
            json.dump({"keys": msgspec.to_builtins(keys), "sha256": _digest(str(keys))}, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        give_to_owner(Path(temporary), self.path.parent)
        os.replace(temporary, self.path)
        flush_folder(self.path.parent)


class _Bucket:
    """A token bucket: `rate` tokens a second, and as many at once."""

    __slots__ = ("burst", "rate", "tokens", "when")

    def __init__(self, rate: float) -> None:
        self.rate, self.burst = rate, max(rate, 1.0)
        self.tokens, self.when = self.burst, time.monotonic()

    def take(self, count: int) -> float:
        """Take tokens, or return the seconds until there are enough (a refused request takes none)."""
        now = time.monotonic()
        self.tokens = min(self.burst, self.tokens + (now - self.when) * self.rate)
        self.when = now
        if self.tokens >= min(count, self.burst):
            self.tokens -= count
            return 0.0
        return (min(count, self.burst) - self.tokens) / self.rate


class Gate:
    """The decision which key may do what, and how often.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> gate = Gate(folder)
    >>> gate.open
    True
    >>> text = KeyFile(folder).add("reader", ["predict"])
    >>> gate.reload()
    >>> gate.open, gate.admit(f"Bearer {text}".encode(), "predict").name
    (False, 'reader')
    """

    def __init__(self, folder: Path) -> None:
        self.file = KeyFile(folder)
        self._keys: dict[str, Key] = {}
        self._buckets: dict[str, _Bucket] = {}
        self._stamp: tuple[int, ...] | None = ()
        self.open = True
        self.reload()

    def reload(self) -> None:
        """Read the keys when the file has changed."""
        self._checked = time.monotonic()
        try:
            found = os.stat(self.file.path)
            stamp = (found.st_ino, found.st_mtime_ns, found.st_size)
        except FileNotFoundError:
            stamp = None
        except OSError as error:
            logger.error("the keys stay as they were: %s", error)
            return
        if stamp == self._stamp:
            return
        try:
            keys = self.file.read()
        except ValueError as error:
            if self._stamp == ():
                raise
            logger.error("the keys stay as they were: %s", error)
            self._stamp = stamp
            return
        self._stamp = stamp
        if keys is not None:
            self.file.close()
        elif self.file.closed.exists():
            logger.error("%s is missing: nothing is allowed until there are keys", self.file.path)
        self.open = self.open and keys is None and not self.file.closed.exists()  # what is closed stays closed
        self._keys = {key.sha256: key for key in keys or () if key.revoked is None}
        self._buckets = {digest: self._bucket(digest, key.rate) for digest, key in self._keys.items() if key.rate}

    def _bucket(self, digest: str, rate: float) -> _Bucket:
        """Return the bucket of a key: the known one, unless the rate has changed."""
        known = self._buckets.get(digest)
        return known if known is not None and known.rate == rate else _Bucket(rate)

    def admit(self, authorization: bytes, scope: str) -> Key | None:
        """Return the key that allows this scope, None when no key is needed; refuse with 401 or 403."""
        if time.monotonic() - self._checked > RELOAD_SECONDS:
            self.reload()
        if self.open:
            return None
        scheme, _, text = authorization.partition(b" ")
        digest = hashlib.sha256(text.strip()).hexdigest()
        # The look-up compares hashes: its timing reveals nothing useful to the sender.
        key = self._keys.get(digest) if scheme.lower() == b"bearer" else None
        if key is None or not hmac.compare_digest(key.sha256, digest):
            raise Refusal(401, "a valid key is needed: Authorization: Bearer KEY")
        if scope not in key.scopes:
            raise Refusal(403, f"the key {key.name!r} does not allow {scope!r}")
        return key

    def charge(self, key: Key | None, trials: int) -> None:
        """Count trials against the key's rate; 429 when there are too many."""
        if key is None or key.sha256 not in self._buckets:
            return
        wait = self._buckets[key.sha256].take(trials)
        if wait > 0.0:
            raise Refusal(429, f"the key {key.name!r} allows {key.rate:g} trials per second", retry_after=wait)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
