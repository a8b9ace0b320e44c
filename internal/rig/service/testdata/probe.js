// The look of the page, for browser_test.go: the value of the expression.
(() => {
  const parse = (text) => text.match(/[\d.]+/g).map(Number); // rgb(r, g, b) or rgba(r, g, b, a)
  const luminance = (rgb) => {
    const [r, g, b] = rgb.slice(0, 3).map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const background = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const colour = parse(getComputedStyle(e).backgroundColor);
      if ((colour[3] ?? 1) === 1) return colour;
      if (colour[3] !== 0) throw new Error("a background that one can see through: " + e.tagName);
    }
    return [255, 255, 255];
  };
  const contrast = (element) => {
    const x = luminance(parse(getComputedStyle(element).color)), y = luminance(background(element));
    return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
  };
  const seen = (element) => element.getClientRects().length > 0;
  const texts = [...document.body.querySelectorAll("*")]
    .filter((e) => seen(e) && [...e.childNodes].some((n) => n.nodeType === Node.TEXT_NODE && n.data.trim()))
    .map((e) => ({ what: e.textContent.trim().slice(0, 60), contrast: contrast(e) }));
  const unlabelled = [...document.querySelectorAll("input, button, svg, [role=region]")]
    .filter((e) => !e.labels?.length && !e.textContent.trim() && !document.getElementById(e.getAttribute("aria-labelledby")))
    .map((e) => e.outerHTML);
  return {
    overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    background: getComputedStyle(document.body).backgroundColor,
    unlabelled, texts,
  };
})()
