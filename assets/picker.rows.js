// What an option looks like, in the list and as the chosen one.

const NAMES = { value: "", title: "", detail: "", right: "", badge: "", dot: "", reason: "" };

function element(tag, className = "", ...children) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  node.append(...children); // strings become text nodes: a name is never markup
  return node;
}

/** The groups as Python sent them, empty fields filled in, each option numbered. */
function entriesOf(groups) {
  let number = 0;
  return groups.map(({ title, options }, index) => {
    const entries = options.map((sent) => {
      const option = { ...NAMES, ...sent };
      // Composed, so that a place in the folded text is the same place in the shown one.
      for (const name in NAMES) if (name !== "value") option[name] = option[name].normalize("NFC");
      return { option, number: number++ };
    });
    return { title: title.normalize("NFC"), index, entries };
  });
}

/** Title, star and class of an option; few elements, as there may be a thousand rows. */
function nameParts(option, words) {
  const title = element("span", "title", ...marked(option.title, words));
  const parts = [option.mono ? pathOf(title) : title];
  if (option.star) parts.push(star());
  if (option.detail) parts.push(element("span", "detail", ...marked(option.detail, words)));
  return parts;
}

/** A path too long for its place loses its beginning: its end tells layers apart. */
function pathOf(title) {
  const text = element("bdi", "", ...title.childNodes);
  text.dir = "ltr";
  title.classList.add("mono");
  title.append(text);
  return title;
}

function star() {
  const node = element("span", "star", "★");
  node.setAttribute("role", "img");
  node.setAttribute("aria-label", "recommended");
  return node;
}

function badgeOf(option, words) {
  const dot = option.dot ? [element("i", `dot ${option.dot}`)] : [];
  return element("span", "badge", ...dot, element("span", "", ...marked(option.badge, words)));
}

function partsOf(option, words) {
  const parts = [element("span", "name", ...nameParts(option, words))];
  if (option.badge || option.dot) parts.push(badgeOf(option, words));
  if (option.right) parts.push(element("span", option.mono ? "right mono" : "right", option.right));
  return parts;
}

/** One line of the list, made once and then only marked anew. */
function rowOf(entry, words) {
  const { option } = entry;
  if (!entry.row) {
    entry.row = element("div", "option");
    entry.row.id = `option-${entry.number}`;
    entry.row.setAttribute("role", "option");
    entry.row.dataset.value = option.value;
    if (option.disabled) entry.row.setAttribute("aria-disabled", "true");
  }
  const mark = words.join(" ");
  if (entry.marked === mark) return entry.row;
  entry.marked = mark;
  entry.row.replaceChildren(...partsOf(option, words));
  if (option.reason) entry.row.append(element("span", "reason", option.reason));
  return entry.row;
}

/** A group with its heading; an untitled group has none. */
function sectionOf(group, words) {
  const section = element("div", "group");
  section.setAttribute("role", "group");
  if (group.title) {
    const heading = element("div", "heading", ...marked(group.title, words));
    heading.id = `group-${group.index}`;
    section.setAttribute("aria-labelledby", heading.id);
    section.append(heading);
  }
  section.append(...group.entries.map((entry) => rowOf(entry, words)));
  return section;
}

/** The closed control's text. */
function chosenParts(option) {
  return option ? partsOf(option, []) : [element("span", "none", "Choose…")];
}

function fullText({ title, detail, badge, right, reason }) {
  return [title, detail, badge, right, reason].filter(Boolean).join(" · ");
}
