package browser

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// finding is one thing that axe-core says about a page.
type finding struct {
	ID, Impact, Help string
	Nodes            []struct{ Target, HTML, Summary string }
}

func (f finding) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s (%s): %s", f.ID, f.Impact, f.Help)
	for i, n := range f.Nodes {
		if i == 5 {
			fmt.Fprintf(&s, "\n    and %d more", len(f.Nodes)-i)
			break
		}
		fmt.Fprintf(&s, "\n    %s\n      %s\n      %s", n.Target, n.HTML, strings.ReplaceAll(n.Summary, "\n", "\n      "))
	}
	return s.String()
}

// colourRules are the rules whose outcome depends on colours alone; the others give the same in the dark.
const colourRules = `{runOnly: ['color-contrast', 'link-in-text-block']}`

// allRules are those that are on by default, best practices included, and the size of what is pressed.
const allRules = `{rules: {'target-size': {enabled: true}}}`

// runAxe returns what axe-core finds wrong on the page, and what it cannot decide.
func (b *tab) runAxe(rules string) (violations, undecided []finding) {
	b.t.Helper()
	if ask[bool](b, "typeof axe === 'undefined'") {
		ask[any](b, b.axe+"\n; null")
	}
	found := ask[struct{ Violations, Incomplete []finding }](b, `(async () => {
		const short = list => list.map(f => ({id: f.id, impact: f.impact || '', help: f.help, nodes: f.nodes.map(n => ({
			target: n.target.flat().join(' '), html: n.html.slice(0, 200), summary: n.failureSummary || '',
		}))}))
		const r = await axe.run(document, Object.assign({preload: false, resultTypes: ['violations', 'incomplete']}, `+rules+`))
		return {violations: short(r.violations), incomplete: short(r.incomplete)}
	})()`)
	return found.Violations, found.Incomplete
}

// doubts are what axe-core cannot decide, over all pages: a person looks at them. They fail nothing.
type doubts map[string][]string // the elements, by rule and reason

func (d doubts) add(page string, findings []finding) {
	for _, f := range findings {
		for _, n := range f.Nodes {
			what := f.ID + ": " + strings.Join(strings.Fields(strings.TrimPrefix(n.Summary, "Fix any of the following:")), " ")
			d[what] = append(d[what], page+": "+n.Target)
		}
	}
}

// print logs them, each once, with a few of the places.
func (d doubts) print(t *testing.T) {
	if len(d) == 0 {
		return
	}
	lines := make([]string, 0, len(d))
	for what, places := range d {
		lines = append(lines, fmt.Sprintf("%s\n    %d times, such as\n    %s", what, len(places), strings.Join(places[:min(3, len(places))], "\n    ")))
	}
	slices.Sort(lines)
	t.Logf("axe-core could not decide %d things, and a person should:\n  %s", len(lines), strings.Join(lines, "\n  "))
}

// expectNoBarrier fails for all that axe-core finds on the page, in each of the looks. What it cannot decide goes to d.
func (b *tab) expectNoBarrier(name string, d doubts, looks ...look) {
	b.t.Helper()
	for _, l := range looks {
		b.show(l)
		rules := allRules
		if l.dark {
			rules = colourRules
		}
		violations, undecided := b.runAxe(rules)
		for _, v := range violations {
			b.t.Errorf("%s, %s: %s", name, l, v)
		}
		d.add(fmt.Sprintf("%s, %s", name, l), undecided)
	}
}

// findCutOff is a script that tells what of the page's text cannot be seen: beyond the edge of the window, or hidden by its own box. Text
// in a box that can be scrolled by itself can be seen, and text that stands far left is for readers of the screen.
const findCutOff = `(() => {
	const width = document.documentElement.clientWidth, found = []
	if (document.documentElement.scrollWidth > width) {
		found.push('the page is ' + document.documentElement.scrollWidth + ' wide in a window of ' + width)
	}
	const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
	for (let node; (node = texts.nextNode());) {
		const element = node.parentElement
		if (!node.data.trim() || ['SCRIPT', 'STYLE', 'NOSCRIPT'].includes(element.tagName) || !element.checkVisibility({visibilityProperty: true})) continue
		const range = document.createRange()
		range.selectNodeContents(node)
		for (const box of range.getClientRects()) {
			if (box.width < 1 || box.right <= 0) continue
			let left = 0, right = width, spoken = false
			for (let up = element; up; up = up.parentElement) {
				const style = getComputedStyle(up), edge = up.getBoundingClientRect()
				if (style.clipPath !== 'none' || style.clip !== 'auto' || edge.width <= 1) { spoken = true; break }
				if (['auto', 'scroll'].includes(style.overflowX) && up !== document.documentElement && up !== document.body) { left = -Infinity; right = Infinity; break }
				if (['hidden', 'clip'].includes(style.overflowX)) { left = Math.max(left, edge.left); right = Math.min(right, edge.right) }
			}
			if (!spoken && (box.left < left - 1 || box.right > right + 1)) {
				found.push(element.tagName.toLowerCase() + '.' + element.className + ' "' + node.data.trim().slice(0, 60) + '" stands at ' +
					Math.round(box.left) + ' to ' + Math.round(box.right) + ', and ' + Math.round(left) + ' to ' + Math.round(right) + ' is seen')
				break
			}
		}
	}
	return found
})()`

// expectAllSeen fails when a part of the page is cut off, or when the page scrolls sideways, in any of the looks.
func (b *tab) expectAllSeen(name string, looks ...look) {
	b.t.Helper()
	for _, l := range looks {
		b.show(l)
		for _, f := range ask[[]string](b, findCutOff) {
			b.t.Errorf("%s, %d wide at %v times the size: %s", name, l.width, l.scale, f)
		}
	}
}

var (
	narrow = look{width: 320, height: 640, scale: 1, language: "en"}
	zoomed = look{width: 640, height: 450, scale: 2, language: "en"} // 1280 wide at 200 %
)
