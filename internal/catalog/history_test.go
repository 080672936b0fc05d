package catalog

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

// checkHistory holds what the rows tell of rejected and archived documents against every entry.
func (w *world) checkHistory(c *Catalog) {
	w.t.Helper()
	var rejected []time.Time
	archived := map[archive.Key]bool{}
	kit.Must(w.t, w.led.EntriesOldestFirst(func(e ledger.Entry) error {
		switch e.State {
		case ledger.Rejected:
			rejected = append(rejected, e.SeenAt.Truncate(time.Millisecond))
		case ledger.Archived:
			archived[e.Key] = true
		}
		return nil
	}))
	slices.SortFunc(rejected, func(a, b time.Time) int { return b.Compare(a) })
	for _, most := range []int{1, len(rejected) / 2, len(rejected), 1000} {
		for _, n := range []int{0, len(rejected) / 3, len(rejected) - 1} { // since is the time of one of them
			got, err := c.RejectedSince(w.t.Context(), rejected[n], most)
			last := n + 1
			for last < len(rejected) && rejected[last].Equal(rejected[n]) {
				last++
			}
			if want := rejected[:min(last, most)]; err != nil || !slices.EqualFunc(got, want, time.Time.Equal) {
				w.t.Errorf("rejected since %v, %d at most: %v, %d times, want %d", rejected[n], most, err, len(got), len(want))
			}
		}
	}
	keys, err := c.NewestIn(w.t.Context(), ledger.Archived, 1000)
	kit.Check(w.t, err == nil && len(keys) == len(archived) && !slices.ContainsFunc(keys, func(k archive.Key) bool { return !archived[k] }),
		"%v: %d archived documents, want %d", err, len(keys), len(archived))
	few, err := c.NewestIn(w.t.Context(), ledger.Archived, 5)
	if err != nil || !slices.Equal(few, keys[:5]) {
		w.t.Errorf("%v: the newest five are %v, of all %v", err, few, keys[:5])
	}
	oldest := slices.MinFunc(keys, func(a, b archive.Key) int { return bytes.Compare(a[:], b[:]) })
	kit.Check(w.t, !slices.Contains(few, oldest), "the oldest document is among the newest five")
}

// What is drawn of rejected and archived documents are those of the ledger, in a catalog that followed it and in one that was made anew.
// One that stopped tells what it has, one that is not there says so.
func TestHistory_I32_RowsAreTheEntries(t *testing.T) {
	w := newWorld(t, 31)
	for range 10 {
		w.goOn(100)
	}
	w.inBubble(t, func(t *testing.T) {
		cfg := w.config()
		var isFull atomic.Bool
		cfg.CheckSpace = func() error {
			if isFull.Load() {
				return errors.New("no room")
			}
			return nil
		}
		c := New(cfg)
		_, err := c.RejectedSince(t.Context(), time.Time{}, 10)
		kit.Check(t, err != nil && err.Error() == "the answer is not complete: the catalog is at 0 %", "before it is opened: %v", err)
		stop := runUntilMade(c)
		synctest.Wait()
		w.checkHistory(c)
		for range 10 {
			w.goOn(100)
			c.Wake()
			time.Sleep(2 * gatherTime)
			synctest.Wait()
			w.checkHistory(c)
		}
		isFull.Store(true)
		w.goOn(10)
		c.Wake()
		time.Sleep(2 * gatherTime)
		synctest.Wait()
		kit.Want(t, "it is not complete", c.Status().Describe(), "the catalog is not complete: no room")
		_, err = c.NewestIn(t.Context(), ledger.Archived, 10)
		kit.Must(t, err)
		isFull.Store(false)
		time.Sleep(2 * retryAfter)
		synctest.Wait()
		w.checkHistory(c)
		stop()
		kit.Must(t, os.Remove(c.path()))
		c = New(w.config())
		defer runUntilMade(c)()
		w.checkHistory(c)
	})
}
