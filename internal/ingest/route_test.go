package ingest

import (
	"testing"
	"time"

	"vaultd/internal/ledger"
)

// What was under way when a route was stopped for good does not open it again.
func TestRoutes_I8_LockedStaysLocked(t *testing.T) {
	r, now := newRoutes(), time.Unix(1, 0)
	r.lock("vault V", ledger.Cause{Code: "cross-wired"}, now)
	r.opens("vault V")
	r.trip("vault V", ledger.Cause{Code: "http-403"}, 0, now)
	r.settle("vault V", now)
	if _, rests := r.rests("vault V", now.Add(365*24*time.Hour)); !rests || r.list()[0].Cause.Code != "cross-wired" {
		t.Error(r.list())
	}
}
