// The tests of this file are inside the package: what the first one excludes needs an upload of
// another vault to end between two statements.
// That of copies asks for two rows of the table of routes alone.
package ingest

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
	"vaultd/internal/window"
)

// submitted keeps what is committed, and never answers.
type submitted struct {
	Ledger
	changes []ledger.Change
}

func (s *submitted) Submit(cs []ledger.Change, _ func([]ledger.Result)) {
	s.changes = append(s.changes, cs...)
}

// I11: the windows of several documents were found to be over, and then the line turned
// out to be quick. What was found counts for all of them: the ledger never holds the
// intent of an upload that is not made.
func TestUpload_I11_OverIsOverForAll(t *testing.T) {
	t.Parallel()
	l, now := &submitted{}, archive.Instant{Wall: time.Now(), Boot: time.Hour, BootID: "boot"}
	c := New(Config{Ledger: l, Routes: map[ledger.Route]Route{ledger.Vault: {Workers: 4}}, Planner: &window.Planner{Workers: 4}, Now: func() archive.Instant { return now }, Log: slog.New(slog.DiscardHandler)})
	var es []ledger.Entry
	for n := range byte(20) {
		es = append(es, ledger.Entry{Key: archive.Key{n}, Route: ledger.Vault, State: ledger.Registered, Vault: "V", Package: archive.Package{Size: 1}, Registrations: []ledger.Registration{{Ticket: archive.Ticket{Sent: now}}}})
	}
	c.uploadStep().Start(&task{Admission: admission{Most: lateBatch, Kind: uint8(windowOver)}, Jobs: es, Now: now, Queue: "vault V"})
	over := 0
	for _, change := range l.changes {
		if _, is := change.Events[0].(ledger.WindowClosed); is {
			over++
		}
	}
	kit.Want(t, "entries whose window is booked as over", over, len(es))
	kit.Want(t, "changes", len(l.changes), len(es))
}

// I25: with copies of what was sent configured, a delivered PDF is placed as
// before: only what a Sender sent can be copied, file by file.
func TestCopies_I25_OfWhatASenderSentAlone(t *testing.T) {
	t.Parallel()
	c := &Engine{cfg: Config{Copies: struct{ Copies }{}, Routes: map[ledger.Route]Route{ledger.PDF: {}, ledger.Network: {Sender: struct{ Sender }{}}}}}
	for r, want := range map[ledger.Route]bool{ledger.PDF: false, ledger.Network: true} {
		e := ledger.Entry{Route: r, State: ledger.Delivered, Source: ledger.Claimed}
		kit.Want(t, fmt.Sprintf("a delivered document of route %s is copied", r), c.isToBeCopied(e), want)
	}
}
