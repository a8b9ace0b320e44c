// The look of the page, for browser_test.go: the value of the expression.
(() => {
  // A colour as CSS computes it: rgb(r, g, b), rgb(r, g, b, a), or color(srgb r g b).
  const parse = text => {
    const n = text.match(/[\d.]+(e-?\d+)?/g).map(Number);
    return text.startsWith("color(srgb") ? { rgb: n.slice(0, 3), a: n[3] ?? 1 } : { rgb: n.slice(0, 3).map(v => v / 255), a: n[3] ?? 1 };
  };
  const luminance = rgb => {
    const [r, g, b] = rgb.map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const background = element => {
    for (let e = element; e; e = e.parentElement) {
      const colour = parse(getComputedStyle(e).backgroundColor);
      if (colour.a === 1) return colour.rgb;
      if (colour.a !== 0) throw new Error("a background that one can see through: " + e.outerHTML.slice(0, 80));
    }
    return [1, 1, 1];
  };
  const contrast = (a, b) => {
    const x = luminance(a), y = luminance(b);
    return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
  };
  const words = element => element.textContent.replace(/\s+/g, " ").trim();
  const seen = element => { const r = element.getBoundingClientRect(); return r.width > 0 && r.height > 0; };

  const texts = [];
  for (const e of document.body.querySelectorAll("*")) {
    const own = [...e.childNodes].some(n => n.nodeType === Node.TEXT_NODE && n.data.trim());
    if (!own || !seen(e) || e.closest("svg")) continue;
    texts.push({ what: words(e).slice(0, 60), contrast: contrast(parse(getComputedStyle(e).color).rgb, background(e)) });
  }
  const charts = [...document.querySelectorAll("figure")].filter(seen).map(figure => {
    const svgs = [...figure.querySelectorAll("svg")].filter(seen);
    const box = svgs[0]?.getBoundingClientRect();
    const labels = svgs.flatMap(svg => [...svg.querySelectorAll("text")]).map(t => {
      const r = t.getBoundingClientRect();
      return {
        what: t.textContent,
        contrast: contrast(parse(getComputedStyle(t).fill).rgb, background(figure)),
        size: parseFloat(getComputedStyle(t).fontSize) * box.width / svgs[0].viewBox.baseVal.width,
        out: Math.max(box.left - r.left, r.right - box.right, box.top - r.top, r.bottom - box.bottom),
      };
    });
    return { name: svgs[0]?.getAttribute("aria-label") ?? "", labels };
  });
  return {
    overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    width: document.documentElement.clientWidth,
    background: getComputedStyle(document.body).backgroundColor,
    texts, charts,
  };
})()
