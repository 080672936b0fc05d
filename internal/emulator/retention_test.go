package emulator

import (
	"strings"
	"testing"
	"time"

	"vaultd/internal/test/kit"
)

// A document whose retention is over is in neither index nor status list; its bumId is unknown, and so is its package.
func TestRetentionReading(t *testing.T) {
	w := newWorld(t, nil)
	ticket := w.register(1)
	w.mustPut(ticket, zipOf("a"))
	unused := w.register(2) // never archived: nothing of it ends
	w.now = w.now.Add(time.Hour)
	w.read(Readings{Retention: 24 * time.Hour})
	shown := func() (list, index bool, status, download int) {
		list = strings.Contains(w.call("GET", docs+"/status", "").body, ticket.bumID)
		index = strings.Contains(w.call("GET", "/v1/vaults/V1/index", "").body, ticket.bumID)
		return list, index, w.call("GET", docs+"/"+ticket.bumID+"/status", "").status, w.call("GET", docs+"/"+ticket.bumID, "").status
	}
	since := w.Registrations()[0].ArchivedAt
	for _, row := range []struct {
		at    time.Duration // after its success
		there bool
	}{{time.Hour, true}, {24*time.Hour - 1, true}, {24 * time.Hour, false}, {365 * 24 * time.Hour, false}} {
		w.now = since.Add(row.at)
		list, index, status, download := shown()
		if list != row.there || index != row.there || (status == 200) != row.there || (download == 200) != row.there || !row.there && (status != 404 || download != 404) {
			t.Errorf("%v after its success: in the list %t, in the index %t, status %d, download %d", row.at, list, index, status, download)
		}
	}
	kit.Holds(t, "the answer", w.call("GET", docs+"/status", "").body, unused.bumID)
	kit.Check(t, w.SetReadings(Readings{Retention: -1}) != nil, "a retention of less than nothing was taken")
}
