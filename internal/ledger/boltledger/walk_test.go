package boltledger_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/test/kit"
)

// chance proposes any event; most of them are illegal most of the time.
func (d *doc) chance(r *rand.Rand) ledger.Event {
	later := d.at.Add(time.Duration(r.IntN(100)) * time.Minute)
	if r.IntN(4) == 0 {
		later = time.Time{}
	}
	cause := ledger.Cause{Code: "code", Text: "words"}
	human := ledger.Operator{UID: 7}                               // a reason comes with its text, which note_test.go gives
	remote := archive.RemoteID(fmt.Sprintf("bum-%d", r.IntN(400))) // collisions are likely
	address := archive.PresignedURL(fmt.Sprintf("https://store.example/%d?X-Amz-Signature=SECRET", r.IntN(400)))
	heard := remote
	if c := d.e.Current(); c != nil && r.IntN(4) != 0 {
		heard = c.Ticket.Remote
	}
	words := []archive.ServiceStatus{archive.Unfamiliar, archive.WaitingForPackage, archive.InProgress, archive.Successful, archive.Failed, archive.Absent}
	seal := d.sealed()
	seal.ID = archive.DeriveID("V1", sum(fmt.Sprint(r.IntN(30))), archive.Digest{})
	seal.Content = sum(fmt.Sprint(r.IntN(30)))
	if k, ok, err := d.l.FindByID(seal.ID); err == nil && ok && r.IntN(2) == 0 {
		seal.Supersedes = k
	}
	seal.Number, seal.StrangeDate = archive.NumberDigest{1, byte(r.IntN(10))}, r.IntN(5) == 0
	seal.SameContent, _, _ = d.l.FindByContent(seal.Content)
	if after, err := ledger.Transition(d.e, seal, archive.Instant{Wall: d.at}); err == nil {
		seal.SameNumber, _, _ = d.l.FindSameNumber(after) // by now another one of the same gather may have it
	}
	all := []ledger.Event{
		d.claim(), ledger.Resealed{Package: seal.Package, Seal: seal.Seal}, ledger.StillChanging{NotBefore: later}, ledger.Postponed{NotBefore: later, Cause: cause}, seal, seal, ledger.Refused{Cause: cause},
		ledger.FoundDuplicate{First: archive.Key{1}}, ledger.SentToQuarantine{Cause: cause}, ledger.RegisterIntended{}, ledger.RegisterIntended{},
		ledger.RegisterUnanswered{NotBefore: later}, ledger.RegisterNotTaken{NotBefore: later}, ledger.BatchRefused{Part: 2}, ledger.RegisterRefused{Cause: cause},
		ledger.TicketReceived{Ticket: archive.Ticket{Remote: remote, URL: address, Date: d.at}},
		ledger.TicketReceived{Ticket: archive.Ticket{Remote: remote, URL: address, Date: d.at}},
		ledger.AnswerMixedUp{Cause: cause}, ledger.UploadIntended{}, ledger.UploadNotSent{NotBefore: later}, ledger.UploadUnanswered{NotBefore: later},
		ledger.UploadRefused{NotBefore: later}, d.accepted(), ledger.WindowClosed{NotBefore: later}, ledger.WindowClosed{NotBefore: later},
		ledger.StatusSeen{Receipt: archive.Receipt{Remote: heard, Status: words[r.IntN(len(words))], Updated: later, Record: []byte("{}")}, Grace: time.Hour, NotBefore: later},
		ledger.StatusSeen{Receipt: archive.Receipt{Remote: heard, Status: words[r.IntN(len(words))], Updated: later, Record: []byte("{}")}, Grace: time.Hour, NotBefore: later},
		ledger.PlaceIntended{Dest: "_there/x"}, ledger.Placed{DisposeAt: later}, ledger.DisposeIntended{}, ledger.Disposed{Dest: "/moved"}, ledger.DisposalStopped{Cause: cause},
		ledger.Held{By: human}, ledger.Unheld{By: human}, ledger.Closed{By: human}, ledger.Released{By: human}, ledger.Superseded{By: archive.Key{1}}, ledger.Retried{By: human, As: archive.Key{1}},
	}
	if d.e.State == ledger.Registered && r.IntN(3) == 0 {
		return ledger.UploadIntended{} // else hardly any walk came far
	}
	if d.e.State == ledger.Sending && r.IntN(3) == 0 {
		return ledger.UploadAccepted{NotBefore: later}
	}
	if d.e.NeedsReconcile && r.IntN(3) == 0 {
		return ledger.Reconciled{} // else hardly any walk came far
	}
	if r.IntN(8) == 0 { // the ledger is restored, and what follows
		all = []ledger.Event{
			ledger.ReconcileRequired{}, ledger.Reconciled{}, ledger.Reconciled{}, ledger.RegistrationFound{Remote: remote, ID: d.e.ID},
			ledger.RegistrationFound{Remote: remote, ID: d.e.FirstID.Generation(r.IntN(3))}, ledger.SourceFound{Source: ledger.Kept, Dest: "_archived/y"},
			ledger.SourceFound{Source: ledger.Returned, Dest: "_rejected/y"},
			ledger.Recovered{Vault: "V1", State: ledger.Archived, Source: ledger.Gone, ID: seal.ID, Remote: remote, SuccessRecord: []byte("{}"), ArchivedAt: d.at},
		}
	}
	ev := all[r.IntN(len(all))]
	if _, gives := ev.(ledger.Closed); gives && d.e.HasNothingAtService() && r.IntN(10) != 0 {
		return ledger.RegisterIntended{} // else hardly any walk came far
	}
	return ev
}

// Random lives of many documents, several changes to a commit, with restarts:
// all that is derived agrees with its source, and each result is what was
// stored.
func TestWalk_I14_DerivedAgreesWithEntries(t *testing.T) {
	reached := map[ledger.State]bool{}
	seeds := uint64(3)
	if kit.Sampled(t, "crowds of documents") {
		seeds = 1
	}
	for seed := range seeds {
		r := rand.New(rand.NewPCG(seed, 1))
		dir := newLedger(t)
		l := open(t, boltledger.Config{Dir: dir})
		var ds []*doc
		for n := range 60 {
			ds = append(ds, newDoc(t, l, n))
		}
		for round := range 150 {
			var cs []ledger.Change
			for range 20 {
				d := ds[r.IntN(len(ds))]
				d.at = d.at.Add(time.Duration(r.IntN(90)) * time.Minute)
				cs = append(cs, d.change(d.likely(r)))
			}
			rs := kit.Value(l.Apply(t.Context(), cs...))(t)
			latest(t, ds, rs)
			for _, res := range rs {
				reached[res.Entry.State] = true
			}
			if round%50 == 49 {
				checkWalk(t, l, ds)
				l.Close()
				l = open(t, boltledger.Config{Dir: dir})
				for _, d := range ds {
					d.l = l
				}
			}
		}
	}
	for _, s := range ledger.States() {
		kit.Check(t, reached[s] || s == ledger.Delivered || seeds != 3, "no document came to %s, want one", s)
	}
}

// likely proposes an event that is legal more often than not.
func (d *doc) likely(r *rand.Rand) ledger.Event {
	ev := d.chance(r)
	for range 12 {
		if _, err := ledger.Transition(d.e, ev, archive.Instant{Wall: d.at}); err == nil {
			break
		}
		ev = d.chance(r)
	}
	return ev
}

func latest(t *testing.T, ds []*doc, rs []ledger.Result) {
	for _, res := range rs {
		var stale *ledger.StaleError
		var taken *ledger.TakenError
		switch d := ds[slices.IndexFunc(ds, func(d *doc) bool { return d.e.Key == res.Key })]; {
		case res.Err == nil:
			d.e = res.Entry
		case !errors.Is(res.Err, ledger.ErrIllegal) && !errors.As(res.Err, &stale) && !errors.As(res.Err, &taken):
			t.Fatal(res.Err)
		}
	}
}

func checkWalk(t *testing.T, l *boltledger.Ledger, ds []*doc) {
	t.Helper()
	sound(t, l)
	due := map[archive.Key]ledger.Step{}
	for s := ledger.Seal; s <= ledger.Dispose; s++ {
		es, next := dueOf(t, l, s, began.AddDate(10, 0, 0), 1000, nil)
		kit.Need(t, next.IsZero(), "next is due to %s at %v, want no more", s, next)
		for _, e := range es {
			due[e.Key] = s
		}
	}
	counted := map[ledger.Attention]int{}
	for c := ledger.Waiting; c <= ledger.StrangeDate; c++ {
		counts := kit.Value(l.CountAttention(c, time.Time{}))(t)
		for _, of := range counts {
			counted[c] += of.Entries
		}
	}
	for _, d := range ds {
		if d.e.State != ledger.None && d.e.Attention() != ledger.NoAttention {
			counted[d.e.Attention()]--
		}
		e, _, err := l.Entry(d.e.Key)
		kit.Check(t, err == nil && (d.e.State == ledger.None || reflect.DeepEqual(e, d.e)),
			"stored\n%+v (%v), want\n%+v", e, err, d.e)
		if s, _, ok := ledger.Due(d.e); ok != (due[d.e.Key] != ledger.NoStep) || s != due[d.e.Key] {
			t.Errorf("%s: the index says it is due to %s, want %s", d.e.Key, due[d.e.Key], s)
		}
	}
	bare := map[archive.NumberDigest]archive.Key{}
	for _, d := range ds { // of the documents of one number that are not rejected, one alone names no other one
		if e := d.e; !e.Number.IsZero() && e.State != ledger.Rejected && e.SameNumber.IsZero() && e.Supersedes.IsZero() {
			first, ok := bare[e.Number]
			kit.Check(t, !ok, "%s and %s have one invoice number, want one of them to name the other", first, e.Key)
			bare[e.Number] = e.Key
		}
	}
	for c, n := range counted {
		kit.Want(t, fmt.Sprintf("entries of class %d, counted too often", c), n, 0)
	}
}

// grown makes a ledger whose buckets are trees of several levels.
func grown(t *testing.T) string {
	t.Helper()
	dir := newLedger(t)
	l := open(t, boltledger.Config{Dir: dir})
	var cs []ledger.Change
	for n := range 500 {
		d := newDoc(t, l, n)
		cs = append(cs, d.change(d.claim(), d.sealed()))
	}
	for some := range slices.Chunk(cs, 50) {
		applied(t, l, some...)
	}
	kit.Must(t, l.Close())
	return dir
}
