package main

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/test/kit"
)

// The goals that do not depend on the machine, on a tenth of the sets: how often the ledger is synced, how many calls are
// made, what is sent, how much memory is held. How fast it goes is for vaultbench itself.
func TestCounted(t *testing.T) {
	if kit.Long(t, "two data sets through the real program"); kit.Race {
		t.Skip("the race detector changes what is counted")
	}
	b := quickBench(t)
	for _, set := range []string{setNormal, setTiny} {
		t.Run(set, func(t *testing.T) {
			o := runOptions{service: fakeOptions{TLS: true, Verify: true}, setup: setup{BatchWait: 2 * time.Second}}
			s, err := b.run(t.Context(), t.TempDir(), set, o)
			must(t, err)
			for _, c := range countedGoals(set) {
				v := c.Of(s)
				t.Logf("%s: %.4g (%s)", c.Name, v, c.Want)
				kit.Check(t, c.Holds(v), "%s: %.4g, wanted %s", c.Name, v, c.Want)
			}
		})
	}
}

// countedGoals hold for every run of a set. Some are asked of tiny documents alone, of which enough come even on a slow
// machine; what is asked of their syncs leaves room for one that takes no more than forty a second.
func countedGoals(set string) []count {
	none := func(name, figure string) count { return count{name, figureOfRow(figure), "0", atMost(0)} }
	all := []count{
		{"G3: ledger syncs a document, at 1,000 a second or more", syncsAtPace, "<= 0.1", atMost(0.1)},
		{"G9: peak RssAnon, MiB", peakMiB, "<= 64", atMost(64)},
		{"documents registered again without a fault", func(s sample) float64 { return s.figureNamed("registered") - float64(s.Docs) }, "0", atMost(0)},
		{"uploads that were not needed", func(s sample) float64 { return s.figureNamed("puts") - float64(s.Docs) }, "0", atMost(0)},
		none("documents under two numbers", "duplicates"),
		none("short, spoilt or badly signed bodies", "bad"),
	}
	if set == setTiny {
		all = append(all,
			count{"G3: ledger syncs a document, as it was", syncsPerDoc, "<= 2", atMost(2)},
			count{"documents in a registration call", func(s sample) float64 { return quotient(s.figureNamed("registered"), s.figureNamed("batches")) }, ">= 25", atLeast(25)})
	}
	return all
}

// G6: what is sent is hardly larger than what the highest level makes of it, and never larger than the files themselves.
func TestCounted_ZIPSizes(t *testing.T) {
	b := quickBench(t)
	for name, docs := range map[string]int{setNormal: 40, setTiny: 200} {
		set := grow(t, name, docs, 1)
		usual, err := b.weigh(t.Context(), set, "default", t.TempDir())
		must(t, err)
		best, err := b.weigh(t.Context(), set, "max", t.TempDir())
		must(t, err)
		if r := quotient(float64(usual.Out), float64(best.Out)); !(r <= 1.003) {
			t.Errorf("set %s: the ZIPs are %.4f times those of the highest level, wanted <= 1.003", name, r)
		} else {
			t.Logf("set %s: %.4f", name, r)
		}
		kit.Check(t, usual.Over <= 0, "set %s: a ZIP is %.0f bytes larger than its files stored", name, usual.Over)
	}
}

// What the rows of PDFs count holds on every machine: each PDF is registered once and sent once, whole, by vaultd's client, by a
// bare one, and by the whole program.
func TestCounted_PDF(t *testing.T) {
	b := quickBench(t)
	sides := map[string]side{
		"OwnClient":  {Run: b.pdfCallsRun(12, fakeOptions{TLS: true, Verify: true}, ownPDFCalls)},
		"BareClient": {Run: b.pdfCallsRun(12, fakeOptions{TLS: true, Verify: true}, barePDFCalls)},
	}
	if !kit.Sampled(t, "PDFs through the real program") {
		sides["Vaultd"] = side{Run: b.pdfRun(12, fakeOptions{TLS: true, Verify: true})}
	}
	for name, one := range sides {
		t.Run(name, func(t *testing.T) {
			s, err := one.Run(t.Context(), t.TempDir())
			must(t, err)
			for _, c := range pdfCounts() {
				if kit.Race && strings.HasPrefix(c.Name, "peak RssAnon") {
					continue // both clients run in this process, whose memory is the race detector's
				}
				v := c.Of(s)
				kit.Check(t, c.Holds == nil || c.Holds(v), "%s: %.4g, wanted %s", c.Name, v, c.Want)
			}
			if files, err := b.pdfFiles(t.Context(), 12); err != nil || len(files) != 12 || s.Out < 12*38_000 || s.Docs != 12 {
				t.Errorf("%d bytes of %d files were stored, %d documents counted: %v", s.Out, len(files), s.Docs, err)
			}
		})
	}
}

// What is done again is counted by document, under whatever number it comes, and what comes at once by time.
func TestFake_CountsUploadsBegunAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := newFakeServer(fakeOptions{}, "")
		must(t, err)
		one, other := s.addDocument(&fakeDoc{clientUUID: "one"}), s.addDocument(&fakeDoc{clientUUID: "other"})
		s.bookUploadBegin(one.bumID)
		s.bookUploadBegin(other.bumID)
		s.bookUploadBegin("nobody's")
		time.Sleep(rush / 2)
		s.bookUploadBegin(s.addDocument(&fakeDoc{clientUUID: "one"}).bumID)
		time.Sleep(rush)
		s.bookUploadBegin(other.bumID)
		kit.Check(t, s.stats.Rebegun == 2 && s.stats.Reregistered == 1 && s.stats.Rush == 4,
			"%+v, want s.stats.Rebegun = 2, s.stats.Reregistered = 1, s.stats.Rush = 4", s.stats)
	})
}

// The worst death is judged, not the mean, and the last one shows in the life that was not ended.
func TestToll_IsThatOfTheWorstDeath(t *testing.T) {
	f := standIn(t, fakeOptions{})
	dead := &toll{}
	must(t, dead.death(t.Context(), f)) // nothing was heard of it
	for _, now := range []fakeStats{{Rebegun: 1}, {Rebegun: 8, Reregistered: 3}, {Rebegun: 9, Reregistered: 33}} {
		dead.life(now)
	}
	kit.Check(t, dead.rebegun == 7 && dead.reregistered == 30 && dead.underWay == 0,
		"%+v, want dead.rebegun = 7, dead.reregistered = 30, dead.underWay = 0", dead)
	alive := &toll{was: fakeStats{Rebegun: -5}}
	s := sample{}
	must(t, alive.account(t.Context(), f, &s))
	kit.Check(t, s.figureNamed("most_rebegun") == 5, `%+v, want s.figureNamed("most_rebegun") = 5`, s.More)
	alive.was.Puts = -1
	must(t, alive.death(t.Context(), f))
	kit.Check(t, alive.underWay == 1, "a death with work under way does not count as one")
}
