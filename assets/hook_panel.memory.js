// What the reader opened and chose, for as long as the tab of the browser lives.

function remembered(name) {
  try {
    return JSON.parse(sessionStorage.getItem(name)) ?? {};
  } catch {
    return {}; // storage switched off, or another program's text under our name: begin with defaults
  }
}

function remember(name, choices) {
  try {
    sessionStorage.setItem(name, JSON.stringify(choices));
  } catch {
    return; // storage switched off: the choices last as long as this page
  }
}
