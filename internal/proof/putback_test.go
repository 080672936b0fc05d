package proof

import (
	"slices"
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

func (b *book) mark(word string) {
	n := uint32(1)
	for _, l := range b.lines {
		if p, _ := ledger.ParseLine(l); p.Key == "" && p.Ledger == "" {
			n++
		}
	}
	b.append(ledger.MarkLine(uint64(len(b.lines))+1, n, ledger.Mark{Name: word, By: ledger.Operator{UID: 7}, At: b.now}))
}

func (b *book) check() Report {
	return Check(b.journal(), func(yield func(ledger.Entry) bool) {
		for _, e := range b.entries {
			if !yield(e) {
				return
			}
		}
	})
}

func TestCheck_I15_OfALedgerThatWasPutBack(t *testing.T) {
	b := everyday(t)
	b.mark(ledger.MarkRestored)
	for key := byte(3); key <= 5; key++ {
		b.do(key, ledger.ReconcileRequired{})
	}
	b.do(5, ledger.RegistrationFound{Remote: "b8", ID: archive.ID{5}}, says("b8", archive.InProgress), says("b8", archive.Successful))
	next := archive.ID{4}.Generation(1)
	b.do(4, ledger.RegistrationFound{Remote: "b9", ID: next}, says("b9", archive.WaitingForPackage))
	b.do(5, ledger.Reconciled{})
	b.mark(ledger.MarkReconciled)
	b.do(5, ledger.PlaceIntended{Dest: "_archived/" + name(5)}, ledger.Placed{})
	r := b.check()
	kit.Want(t, "findings", r.Findings, nil)
	kit.Check(t, r.Marks == 2 && r.PutBack == 1 && !r.Safe && len(r.NeedReconcile) == 2,
		"%d marks, put back %d times, safe %v, %d unreconciled", r.Marks, r.PutBack, r.Safe, len(r.NeedReconcile))
}

func TestCheck_I15_FindsWhatWasDoneBlindly(t *testing.T) {
	rewrite := func(b *book, event, old, with string) {
		i := slices.IndexFunc(b.lines, func(l []byte) bool {
			return strings.Contains(string(l), `"event":"`+event+`"`) && strings.Contains(string(l), old)
		})
		kit.Need(t, i >= 0, "no line of %s", event)
		b.lines[i] = []byte(strings.Replace(string(b.lines[i]), old, with, 1))
	}
	type row struct {
		do   func(b *book)
		want string
	}
	kit.Rows(t, map[string]row{
		"SentInSafeMode": {func(b *book) {
			b.mark(ledger.MarkRestored)
			b.upload(6, "b20")
		}, "I15"},
		"SentWhileSuspect": {func(b *book) {
			b.upload(6, "b20")
			rewrite(b, "sealed", `"sealed","key":"`+(archive.Key{6}).String()+`","rev":2,`, `"sealed","key":"`+(archive.Key{6}).String()+`","rev":2,"flags":"needs-reconcile",`)
		}, "I15"},
		"LeftWhatItNeverEntered": {func(b *book) { b.mark(ledger.MarkReconciled) }, "I15"},
		"MarkSkipped": {func(b *book) {
			b.mark(ledger.MarkDisposal)
			rewrite(b, ledger.MarkDisposal, `"rev":1`, `"rev":2`)
		}, "I5"},
		"MarkInvented": {func(b *book) {
			b.mark(ledger.MarkDisposal)
			rewrite(b, ledger.MarkDisposal, ledger.MarkDisposal, "created")
		}, "I14"},
		"DoubleTakenBackWithoutEvidence": {func(b *book) {
			b.do(6, ledger.RegisterIntended{}, got("b20"), ledger.UploadIntended{}, ledger.WindowClosed{}, ledger.Released{}, ledger.Held{})
			rewrite(b, "held", "hold double", "hold")
		}, "I13"},
		"SuspectForgotten": {func(b *book) {
			b.do(6, ledger.ReconcileRequired{})
			e := b.entries[archive.Key{6}]
			e.NeedsReconcile = false
			b.entries[archive.Key{6}] = e
		}, "I12"},
		"FoldedAway": {func(b *book) {
			b.do(6, ledger.RegisterIntended{}, got("b20"), ledger.WindowClosed{})
			e := b.entries[archive.Key{6}]
			e.Registrations = nil
			b.entries[archive.Key{6}] = e
		}, "I8"},
		"FoundAndGivenToAnother": {func(b *book) {
			b.do(6, ledger.ReconcileRequired{}, ledger.RegistrationFound{Remote: "b20", ID: archive.ID{6}})
			b.claim(7)
			b.do(7, ledger.RegisterIntended{}, got("b20"))
		}, "I8"},
	}, func(t *testing.T, row row) {
		b := newBook(t)
		b.claim(6)
		row.do(b)
		r := b.check()
		kit.Check(t, slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Promise == row.want }),
			"want %s, found %v", row.want, r.Findings)
	})
}

// What evidence takes back, a checker that sees only lines must let pass: the entry's
// first registration, found after a restore, proved to be empty. What a person decided
// when it was released stays.
func TestCheck_I2_DoubleEndsByEvidence(t *testing.T) {
	for name, row := range map[string]struct {
		first []ledger.Event
		ends  bool
	}{
		"Found":    {[]ledger.Event{ledger.ReconcileRequired{}, ledger.RegistrationFound{Remote: "b2", ID: archive.ID{1}}, ledger.Reconciled{}}, true},
		"Released": {[]ledger.Event{ledger.Released{}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBook(t)
			b.claim(1)
			b.do(1, ledger.RegisterIntended{}, got("b1"), ledger.UploadIntended{}, ledger.WindowClosed{})
			b.do(1, row.first...)
			if !row.ends {
				b.upload(1, "b2")
			}
			kit.Need(t, b.entries[archive.Key{1}].PossibleDouble, "possible double = false, want true")
			for range 3 {
				b.now = b.now.Add(25 * time.Hour)
				b.do(1, says("b1", archive.WaitingForPackage))
			}
			kit.Need(t, b.entries[archive.Key{1}].PossibleDouble != row.ends, "double: %v", !row.ends)
			b.archive(1, "b2")
			r := b.check()
			kit.Check(t, r.OK() && len(r.Double) == 0 == row.ends, "findings = %v, double = %v, want none, and no double: %v", r.Findings, r.Double, row.ends)
		})
	}
}

func TestCheck_I21_CountsWhatIsFolded(t *testing.T) {
	b := newBook(t)
	b.claim(1)
	for n := range 30 {
		b.do(1, ledger.RegisterIntended{}, got(archive.RemoteID(rune('A'+n))), ledger.WindowClosed{})
	}
	r := b.check()
	kit.Check(t, r.OK() && r.Pruned+uint64(len(r.Orphans)) == 30 && len(r.Orphans) <= 9,
		"%d folded, %d listed: %v", r.Pruned, len(r.Orphans), r.Findings)
}
