"""Links of pages to files of the source tree lead to the repository; blocks lose the words for tests."""

import pathlib
import posixpath
import re
import shutil

SOURCE = "https://github.com/primus-fl/primus/blob/main/"

LINK = re.compile(r"\]\(([^):#\s]+)(#[^)\s]*)?\)")
FENCE = re.compile(r"^(```\w+) (?:norun|exit)=.*$", re.M)


def on_page_markdown(markdown, page, **kwargs):
    folder = posixpath.dirname(posixpath.join("docs", page.file.src_uri))

    def lead(match):
        target = posixpath.normpath(posixpath.join(folder, match[1]))
        if target.startswith("docs/"):
            return match[0]
        return "](" + SOURCE + target + (match[2] or "") + ")"

    return LINK.sub(lead, FENCE.sub(r"\1", markdown))


ROOMS = {"Tutorials": "Tutorials", "Howto": "How-to", "Reference": "Reference", "Explanation": "Explanation"}


def on_nav(nav, **kwargs):
    rooms = list(ROOMS)
    nav.items.sort(key=lambda item: rooms.index(item.title) if item.title in rooms else -1)
    for item in nav.items:
        if item.is_section:
            item.title = ROOMS[item.title]
    return nav


SHIM = "https://unpkg.com/iframe-worker/shim"  # the search of pages that are files needs it


def on_post_build(config, **kwargs):
    here = pathlib.Path(__file__).resolve().parents[2] / "bin/site-env/node_modules/iframe-worker/shim/index.js"
    site = pathlib.Path(config["site_dir"])
    shutil.copy(here, site / "assets/javascripts/iframe-worker.js")
    for name in ("site.css", "site.js"):
        shutil.copy(pathlib.Path(__file__).parent / name, site / name)
    (site / "404.html").unlink()  # for servers


CELL = re.compile(r"<td\b.*?</td>", re.S)
CODE = re.compile(r"(?<=<code>)[^<]*(?=</code>)")
LONG_NAME = re.compile(r"\S{17,}")
JOINT = re.compile(r"(?<=\w)[_/,=?](?=\S)")


def code_of_cell(code):
    """Long names are broken where a reader would break them; only GitHub needs a bar to be escaped."""
    return LONG_NAME.sub(lambda name: JOINT.sub(r"\g<0><wbr>", name[0]), code[0].replace("\\|", "|"))


def on_post_page(output, page, **kwargs):
    depth = page.file.dest_uri.count("/")
    output = CELL.sub(lambda cell: CODE.sub(code_of_cell, cell[0]), output)
    return output.replace(SHIM, "../" * depth + "assets/javascripts/iframe-worker.js")
