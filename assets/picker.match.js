// Which options a search finds, in which order, and where in their texts.

const WORD = /[\p{L}\p{N}]/u;

/** Lower case without accents, a character for a character: places in it are places in `text`. */
function fold(text) {
  if (/^[\x20-\x7e]*$/.test(text)) return text.toLowerCase();
  return text.replace(/[^\ud800-\udfff]/g, (c) => c.normalize("NFD").toLowerCase()[0]);
}

const wordsOf = (query) => fold(query.normalize("NFC")).split(/\s+/).filter(Boolean);

/** Every place where one of `words` begins in the folded `text`, with its length. */
function placesOf(words, text) {
  const places = [];
  for (const word of words) {
    for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + 1)) {
      places.push([at, word.length]);
    }
  }
  return places;
}

function startsWord(text, word) {
  return placesOf([word], text).some(([at]) => at === 0 || !WORD.test(text[at - 1]));
}

/** 0 is the best match; null is none. */
function rankOf({ title, value, hay }, words) {
  if (!words.every((word) => hay.includes(word))) return null;
  const query = words.join(" ");
  if (title === query || value === query) return 0;
  if (title.startsWith(query)) return 1;
  if (words.every((word) => startsWord(title, word))) return 2;
  return words.every((word) => title.includes(word)) ? 3 : 4;
}

/** The texts of an option as a search reads them. */
function searchable(option, group) {
  const texts = [option.title, option.detail, option.value, option.badge, group];
  return { title: fold(option.title), value: fold(option.value), hay: fold(texts.join("\n")) };
}

/**
 * The groups that hold a match, each with its matches; the best first in both. Equal ones keep
 * their order.
 */
function findMatches(groups, words) {
  if (!words.length) return groups;
  const found = [];
  for (const group of groups) {
    const ranked = [];
    for (const entry of group.entries) {
      entry.texts ??= searchable(entry.option, group.title);
      const rank = rankOf(entry.texts, words);
      if (rank !== null) ranked.push([rank, entry]);
    }
    ranked.sort((a, b) => a[0] - b[0]);
    if (ranked.length) found.push([ranked[0][0], { ...group, entries: ranked.map((r) => r[1]) }]);
  }
  return found.sort((a, b) => a[0] - b[0]).map((f) => f[1]);
}

/** `text` as nodes, what `words` found in it marked. */
function marked(text, words) {
  const hit = new Uint8Array(text.length);
  for (const [at, length] of placesOf(words, fold(text))) hit.fill(1, at, at + length);
  const nodes = [];
  for (let from = 0, to; from < text.length; from = to) {
    to = from + 1;
    while (to < text.length && hit[to] === hit[from]) to += 1;
    const part = text.slice(from, to);
    nodes.push(hit[from] ? element("mark", "", part) : part);
  }
  return nodes;
}
