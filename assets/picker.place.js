// Where the popups stand. They lie in the top layer, so no scrolling column can cut them off.

const GAP = 4; // px between control and popup
const EDGE = 8; // px kept free at the window's edges
const WIDEST = 460; // px, where the control itself is narrower
const TALLEST = 0.6; // of the window
const ENOUGH = 300; // px: with less room below, and more above, it opens upwards

/** Fix the popup's width and columns, so that nothing moves sideways while one searches. */
function fitWidth(popup, list, control) {
  popup.style.width = "max-content";
  list.style.gridTemplateColumns = "";
  const wanted = Math.min(popup.offsetWidth + 1, WIDEST);
  const width = Math.max(control.offsetWidth, wanted);
  popup.style.width = `${Math.min(width, innerWidth - 2 * EDGE)}px`;
  const [, ...fixed] = getComputedStyle(list).gridTemplateColumns.split(" ");
  list.style.gridTemplateColumns = ["minmax(0, 1fr)", ...fixed].join(" ");
}

/** Put the popup under the control, or over it where there is more room. */
function placePopup(popup, height, control) {
  const box = control.getBoundingClientRect();
  const below = innerHeight - box.bottom - GAP - EDGE;
  const above = box.top - GAP - EDGE;
  const up = below < Math.min(height, ENOUGH) && above > below;
  const tallest = Math.max(Math.min(up ? above : below, TALLEST * innerHeight), 120);
  const left = Math.max(Math.min(box.left, innerWidth - popup.offsetWidth - EDGE), EDGE);
  Object.assign(popup.style, {
    left: `${left}px`,
    top: up ? "auto" : `${box.bottom + GAP}px`,
    bottom: up ? `${innerHeight - box.top + GAP}px` : "auto",
    maxHeight: `${tallest}px`,
    // Upwards a shorter list would pull the search field down, away from the eye.
    minHeight: up ? `${Math.min(height, tallest)}px` : "",
  });
  popup.dataset.side = up ? "above" : "below";
}

/** Scroll the list, and nothing else, until a row is in its middle ("centre") or in sight. */
function scrollToRow(list, row, how) {
  const at = row.getBoundingClientRect();
  const box = list.getBoundingClientRect();
  const heading = list.querySelector(".heading")?.offsetHeight ?? 0; // it sticks to the top
  const [top, bottom] = [box.top + heading, box.bottom - GAP];
  if (how === "centre") list.scrollTop += at.top + at.height / 2 - box.top - box.height / 2;
  else if (row === list.querySelector("[role=option]")) list.scrollTop = 0;
  else if (at.top < top) list.scrollTop += at.top - top;
  else if (at.bottom > bottom) list.scrollTop += at.bottom - bottom;
}
