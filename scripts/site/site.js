// What scrolls can be reached with the keyboard.
window.addEventListener("load", () => {
  for (const box of document.querySelectorAll(".md-typeset__scrollwrap, pre > code")) {
    box.tabIndex = 0;
  }
});
