package main

import (
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/test/kit"
)

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
