"""How the site is built: ``nox -s docs``, or ``python -m sphinx -W -n docs build/site`` with the extra "docs"."""

from __future__ import annotations

import inspect
import os
import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
os.environ.setdefault("MPLBACKEND", "agg")

import linmax  # noqa: E402

sys.path.insert(0, str(HERE.parent / "tests"))
from api_names import DESCRIPTIONS  # noqa: E402

project = "linmax"
author = "The linmax developers"
copyright = "2026, the linmax developers"
release = version = linmax.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["**/sg_execution_times.rst", "sg_execution_times.rst"]
templates_path = ["_templates"]
default_role = "py:obj"
nitpicky = True
nitpick_ignore_regex = [("py:class", r"(numpy|collections)\..*")]  # no outside address is asked

# -- pages

myst_enable_extensions = ["attrs_block", "attrs_inline", "colon_fence", "deflist"]
myst_heading_anchors = 4
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# -- reference

autosummary_generate = True
autodoc_typehints = "none"  # the docstrings say the types
autodoc_member_order = "groupwise"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

# -- gallery

sphinx_gallery_conf = {
    "reset_modules": ("matplotlib", "gallery_looks.style"),
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py",
    "backreferences_dir": "gallery/used",
    "doc_module": ("linmax",),
    "within_subsection_order": "gallery_looks.by_the_story",
    "show_memory": False,
    "capture_repr": ("_repr_html_",),
    "show_signature": False,
    "min_reported_time": 1e9,
    "remove_config_comments": True,
    "download_all_examples": False,
    "image_scrapers": ("matplotlib",),
    "matplotlib_animations": False,
    "default_thumb_file": str(HERE / "_static" / "linmax.png"),
}

# -- how it looks

html_theme = "pydata_sphinx_theme"
html_title = "linmax"
html_logo = "_static/linmax.svg"
html_favicon = "_static/linmax.svg"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_last_updated_fmt = None
html_sidebars = {"**": ["pages.html"], "index": []}
html_theme_options = {
    "logo": {"text": "linmax", "alt_text": "linmax, start page"},
    "navbar_align": "left",
    "navbar_center": [],  # the sidebar has all pages
    "show_prev_next": False,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "navigation_with_keys": False,
    "back_to_top_button": True,
}


# Docstrings are written to be read as plain text: there a bar is an absolute value and a last underscore part of a
# name, while reStructuredText takes them for markup.
def as_plain_text(app, what, name, obj, options, lines):  # noqa: ARG001
    session = False
    for place, line in enumerate(lines):
        session = line.lstrip().startswith(">>>") or (session and bool(line.strip()))
        if not session:
            parts = re.split(r"(``.*?``|`.*?`)", line)
            parts[::2] = [re.sub(r"\||(?<=\w)_(?!\w)|(?<=[\s/-])\*(?=[=\s.])", r"\\\g<0>", part) for part in parts[::2]]
            lines[place] = "".join(parts)


def what_is_returned(app, what, name, obj, options, lines):  # noqa: ARG001
    """Functions that describe a learner say once, here, what they return."""
    if what == "function" and "Returns" not in lines and inspect.signature(obj).return_annotation in DESCRIPTIONS:
        later = [lines.index(title) for title in ("See Also", "Notes", "References", "Examples") if title in lines]
        place = min(later, default=len(lines))
        told = [
            "Returns",
            "-------",
            "learner",
            "    A description without state: run it, compose it, or write it as text.",
        ]
        lines[place:place] = [*told, ""]


def others(app, what, name, obj, skip, options):  # noqa: ARG001
    """Members that scikit-learn, River or Python define are described there."""
    function = obj.fget if isinstance(obj, property) else getattr(obj, "__func__", obj)
    home = getattr(inspect.unwrap(function) if callable(function) else function, "__module__", None) or "linmax"
    return skip or (not home.startswith("linmax") or None)


def code_unless_found(app, env, node, contnode):  # noqa: ARG001
    """A name in single backticks is a link where the reference has it, else plain code; given roles must lead."""
    return contnode if node.get("reftype") == "obj" else None


def setup(app):
    app.connect("missing-reference", code_unless_found)
    app.connect("autodoc-skip-member", others)
    app.connect("autodoc-process-docstring", as_plain_text, priority=100)
    app.connect("autodoc-process-docstring", what_is_returned, priority=200)
