// The button turns the page to the other theme than the one it has.
const button = document.getElementById("theme"), root = document.documentElement;
const dark = () => getComputedStyle(root).colorScheme === "dark" ||
  root.style.colorScheme === "" && matchMedia("(prefers-color-scheme: dark)").matches;
const say = () => { button.textContent = dark() ? "Light" : "Dark"; };
button.addEventListener("click", () => { root.style.colorScheme = dark() ? "light" : "dark"; say(); });
button.hidden = false;
say();
