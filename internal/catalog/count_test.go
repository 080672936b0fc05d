package catalog

import (
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/arrival"
	"vaultd/internal/test/kit"
)

// Rows that differ from the balance are told, whoever runs: beside a stopped daemon nothing changes, and a running one makes the file
// anew, each time that it happens.
func TestCompare_I32_SpoiledRows(t *testing.T) {
	for name, statement := range map[string]string{
		"MissingRow":  "DELETE FROM document WHERE id = 3",
		"OtherState":  "UPDATE document SET state = (state + 1) % 12 WHERE id = 3",
		"NoSuchState": "UPDATE document SET state = 99 WHERE id = 3",
		"AllRows":     "DELETE FROM document",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 4)
			w.goOn(100)
			path := filepath.Join(w.dir, FileName)
			spoil := func() {
				db, err := sql.Open("sqlite", path)
				if err == nil {
					_, err = db.Exec(statement)
				}
				kit.Must(t, errors.Join(err, db.Close()))
			}
			w.inBubble(t, func(t *testing.T) { runUntilMade(New(w.config()))() })
			c := OpenStopped(t.Context(), w.config())
			kit.Want(t, "before", c.Compare(t.Context()), (Comparison{}))
			kit.Must(t, c.Close())
			w.inBubble(t, func(t *testing.T) {
				c := New(w.config())
				stop := runUntilMade(c)
				defer stop()
				for range 2 {
					spoil()
					got := c.Compare(t.Context())
					kit.Check(t, got.Differs != "" && got.NotDone == "", "running: %+v", got)
					time.Sleep(2 * retryAfter)
					synctest.Wait()
					kit.Want(t, "made anew", c.Compare(t.Context()), (Comparison{}))
				}
			})
			spoil()
			c = OpenStopped(t.Context(), w.config())
			if got := c.Compare(t.Context()); !strings.Contains(got.Differs, "it has") && !strings.Contains(got.Differs, "its rows (seen ") {
				t.Errorf("stopped: %+v", got)
			}
			kit.Must(t, c.Close())
		})
	}
}

// A catalog that is behind, being made, closed or missing is told as that, and not as one that differs.
func TestCompare_I32_NotCompared(t *testing.T) {
	w := newWorld(t, 5)
	w.goOn(50)
	c := New(w.config())
	says := func(want string) {
		t.Helper()
		got := c.Compare(t.Context())
		kit.Check(t, got.Differs == "" && strings.Contains(got.NotDone, want), "%+v, want %q", got, want)
	}
	says("the catalog is at 0 %")
	kit.Must(t, c.rebuild(t.Context()))
	f, _, err := c.openFile(t.Context())
	kit.Must(t, err)
	kit.Want(t, "the comparison", c.Compare(t.Context()), (Comparison{}))
	w.goOn(5)
	says(fmt.Sprintf("it has the ledger up to line %d, of %d", f.at.head.N, f.at.head.N+5))
	kit.Must(t, c.closeFile(t.Context(), f))
	c = OpenStopped(t.Context(), Config{StateDir: t.TempDir(), Ledger: w.led, Log: w.config().Log})
	says("there is none")
}

// A line about what comes in tells of no entry, and is no fault.
func TestKeyOf_PassesArrivalsOver(t *testing.T) {
	key := archive.NewKey(time.Unix(1_790_000_000, 0))
	a := arrival.Arrival{Key: key, Rev: 1, Kind: arrival.Extract, State: arrival.Announced, Item: "4711"}
	line := arrival.NewLine(2, a, arrival.Listed{}, archive.Instant{}).Encode()
	_, is, err := keyOf(line)
	kit.Check(t, !is && err == nil, "the line of an arrival: %t, %v", is, err)
	line = ledger.NewLine(2, ledger.Entry{Key: key, Rev: 1, State: ledger.Discovered}, ledger.ClaimedFolder{}, archive.Instant{}).Encode()
	k, is, err := keyOf(line)
	kit.Check(t, is && err == nil && k == key, "the line of an entry: %s, %t, %v", k, is, err)
}
