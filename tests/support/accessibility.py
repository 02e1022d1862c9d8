"""What can be measured of a page that everybody can use. Each check says what fails it; nothing is good."""

from __future__ import annotations

from typing import Any

from tests.support.browser import Console


def poor_contrast(console: Console) -> list[str]:
    """WCAG 2.2 §1.4.3: at least 4.5 for text, at least 3 (§1.4.11) for the segments of a bar."""
    found: list[str] = console.run(_CONTRAST)
    return found


def too_wide(console: Console) -> list[str]:
    """Parts of the page that would have to be scrolled sideways."""
    found: list[str] = console.run(_TOO_WIDE)
    return found


def unnamed_controls(console: Console) -> list[str]:
    """The roles of controls that a screen reader could not name."""
    focusable = [node for node in _tree(console) if _is_control(node)]
    if len(focusable) <= 5:
        return ["nothing was looked at"]
    return [node["role"]["value"] for node in focusable if not node["name"]["value"]]


def roles(console: Console) -> set[str]:
    """Every role on the page, landmarks included."""
    return {node["role"]["value"] for node in _tree(console)}


def _tree(console: Console) -> list[dict[str, Any]]:
    nodes = console.driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    return [node for node in nodes if not node["ignored"]]


def _is_control(node: dict[str, Any]) -> bool:
    focusable = any(p["name"] == "focusable" and p["value"]["value"] for p in node["properties"])
    return focusable and node["role"]["value"] not in ("RootWebArea", "main")


_TOO_WIDE = """
  return [...document.querySelectorAll("html, body, main, #log, #reports, .conversation, .page, .page-body")]
    .filter(node => node.checkVisibility() && node.scrollWidth > node.clientWidth)
    .map(node => node.id || node.className || node.localName)
"""

_CONTRAST = """
  const canvas = Object.assign(document.createElement("canvas"), { width: 1, height: 1 });
  const context = canvas.getContext("2d", { willReadFrequently: true });
  const rgba = (color) => {
    context.clearRect(0, 0, 1, 1); context.fillStyle = color; context.fillRect(0, 0, 1, 1);
    return [...context.getImageData(0, 0, 1, 1).data];
  };
  const luminance = (color) => rgba(color).slice(0, 3)
    .map(c => c / 255).map(c => c <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4)
    .reduce((sum, c, n) => sum + c * [.2126, .7152, .0722][n], 0);
  const ground = (node) => {
    for (; node; node = node.parentElement) {
      const color = getComputedStyle(node).backgroundColor;
      if (rgba(color)[3] === 255) return color;
    }
  };
  const ratio = (a, b) => { const [x, y] = [luminance(a), luminance(b)].sort(); return (y + .05) / (x + .05); };
  const poor = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let seen = 0;
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !node.checkVisibility()) continue;
    seen += 1;
    const value = ratio(getComputedStyle(node).color, ground(node));
    if (value < 4.5) poor.push(`${value.toFixed(2)} ${node.className} ${walker.currentNode.data.slice(0, 30)}`);
  }
  for (const node of document.querySelectorAll(".segment:not([data-section=free], [data-section=answer_reserve])")) {
    const value = ratio(getComputedStyle(node).backgroundColor, ground(node.parentElement));
    if (value < 3) poor.push(`${value.toFixed(2)} ${node.dataset.section}`);
  }
  return seen > 5 ? poor : ["nothing was looked at"];
"""
