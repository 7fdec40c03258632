"""Prints what is compiled or loaded for a learner after its warm-up, by work like that of requests.

Run as a program, with a learner and a kind: in another process than the tests, which have loaded everything.
"""

import contextlib
import random
import sys

from numba.core.dispatcher import Dispatcher

from linmax.service.schemas import ModelOptions
from linmax.service.served_model import UNFIT, make_learner, warm_up


def ask_everything(learner, instance):
    for use in (
        lambda: learner.predict_proba(**instance),
        lambda: learner.predict_set(**instance, coverage=0.8),
        lambda: learner.learn(**instance, wrong="x"),
        lambda: learner.learn(**instance, label=None),
        lambda: learner.wants_label(**instance),
        lambda: learner._inquiry({"v1": "x"}).next(),
        lambda: learner._panels_to_compare(None)(),
        lambda: learner.weights.arrays,
    ):
        with contextlib.suppress(*UNFIT):
            use()


def main():
    compiled, plain = [], Dispatcher.compile

    def compile_and_note(self, signature):
        compiled.append(self.py_func.__qualname__)
        return plain(self, signature)

    Dispatcher.compile = compile_and_note
    options = ModelOptions(learner=sys.argv[1], kind=sys.argv[2])
    warm_up(options)
    assert compiled, "nothing was compiled: is NUMBA_DISABLE_JIT set?"
    compiled.clear()
    learner, chance = make_learner(options), random.Random(0)
    for trial in range(700):
        known = "wxyz"[: 2 + min(trial // 50, 2)]
        attributes = {f"a{chance.randrange(20 + trial // 10)}": chance.random() for _ in range(5)}
        votes = {f"v{i}": chance.choice(known) for i in range(5)}
        blocks = {"attributes": attributes, "votes": votes}
        instance = blocks if options.kind == "mixed" else {options.kind: blocks[options.kind]}
        learner.predict(**instance)
        learner.learn(**instance, label=chance.choice(known))
        if trial % 100 == 50:
            ask_everything(learner, instance)
    many = {f"n{i}": 0.5 if options.kind == "attributes" else "w" for i in range(3000)}
    wide = {"votes": many} if options.kind == "mixed" else {options.kind: many}
    for _ in range(2):
        learner.predict(**wide)
        learner.learn(**wide, label="x")
    print(compiled)


if __name__ == "__main__":
    main()
