// Keeps the first page fresh, and says so when vaultd does not answer. The page works without it.
"use strict";
(() => {
  const every = 10000;
  const lost = document.getElementById("lost");
  let since = lost.dataset.since;
  // What a reader of the screen hears: the verdict, what needs a person, and what is paused. Nothing is said while it stays the same.
  const summarize = (page) => [...page.querySelectorAll("#verdict, .need h3, section[aria-labelledby=pauses] :is(h2, tbody th)")].map((e) => e.textContent.trim()).join(". ");
  const spoken = document.getElementById("spoken");
  let summary = summarize(document);
  const tell = (element, text) => { if (element.textContent !== text) element.textContent = text; };

  // What a person opened stays open, and what was scrolled sideways stays where it is.
  const kept = () => [...document.querySelectorAll("#live [data-keep]")];
  const nameOf = (element) => element.tagName + " " + element.dataset.keep;
  const readPlaces = () => new Map(kept().map((e) => [nameOf(e), { open: e.open, left: e.scrollLeft }]));
  const putBack = (places) => {
    for (const e of kept()) {
      const place = places.get(nameOf(e));
      if (!place) continue; // it is new on the page
      if (place.open) e.open = true;
      e.scrollLeft = place.left;
    }
  };

  const refresh = async () => {
    try {
      const answer = await fetch("/?refresh", { headers: { Accept: "text/html" }, cache: "no-store", redirect: "error", signal: AbortSignal.timeout(every) });
      if (answer.status === 403) { // the session is over: nothing more comes
        lost.hidden = false;
        tell(lost, lost.dataset.over + " " + since + ".");
        return;
      }
      if (!answer.ok) throw new Error(String(answer.status));
      const next = new DOMParser().parseFromString(await answer.text(), "text/html");
      const part = (name) => [document.getElementById(name), next.getElementById(name)];
      const [live, newLive] = part("live"), [frame, newFrame] = part("frame"), [verdict, newVerdict] = part("verdict");
      const newSummary = summarize(next); // before its parts move into this page
      frame.className = newFrame.className;
      tell(verdict, newVerdict.textContent);
      document.title = next.title;
      if (!live.contains(document.activeElement) && document.getSelection().isCollapsed) { // else it would be taken away from under the hand
        const places = readPlaces(); // before the elements leave the page: they forget then how far they were scrolled
        live.replaceChildren(...newLive.childNodes);
        putBack(places);
        document.querySelector("footer").replaceChildren(...next.querySelector("footer").childNodes);
      }
      since = next.getElementById("lost").dataset.since;
      if (!lost.hidden) tell(spoken, spoken.dataset.back + " " + newSummary);
      else if (newSummary !== summary) tell(spoken, newSummary);
      summary = newSummary;
      lost.hidden = true;
      tell(lost, "");
    } catch {
      lost.hidden = false;
      tell(lost, lost.dataset.text + " " + since + ".");
    }
  };
  setInterval(() => { if (!document.hidden) refresh(); }, every);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) refresh(); });
})();
