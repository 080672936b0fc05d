package boltledger_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/test/kit"
)

// Two folders with one identity are sealed in the same gather: one of them gets
// it.
func TestIdentity_I2_TakenInOneGather(t *testing.T) { eachStore(t, identityTakenInOneGather) }

func identityTakenInOneGather(t *testing.T, open opener) {
	l := open()
	a, b := newDoc(t, l, 1), newDoc(t, l, 2)
	a.do(a.claim())
	b.do(b.claim())
	same := b.sealed()
	same.ID = a.sealed().ID
	rs, _ := l.Apply(t.Context(), a.change(a.sealed()), b.change(same))
	var taken *ledger.TakenError
	if rs[0].Err != nil || !errors.As(rs[1].Err, &taken) || taken.What != "clientUUID" || taken.By != a.e.Key {
		t.Fatalf("%v and %v, want the first made and the second taken by it", rs[0].Err, rs[1].Err)
	}
	a.e = rs[0].Entry
	a.do(ledger.Refused{Cause: ledger.Cause{Code: "x"}})
	same.Supersedes = a.e.Key
	applied(t, l, b.change(same), a.change(ledger.Superseded{By: b.e.Key}))
	k, _, err := l.FindByID(same.ID)
	kit.Check(t, k == b.e.Key, "the identity leads to %v (%v), want the second folder %s", k, err, b.e.Key)
	sound(t, l)
}

// A document that is packed again for another receiver has another identity.
// The names of the former one still lead to it, and are no damage.
func TestUnsealed_I5_FormerNamesAreNoDamage(t *testing.T) { eachStore(t, unseals) }

func unseals(t *testing.T, open opener) {
	l := open()
	d := newDoc(t, l, 1)
	d.do(ledger.ClaimedFolder{Route: ledger.PDF, Drop: "scans", Folder: "scan1.pdf"})
	first := d.sealed()
	d.do(first)
	sound(t, l)
	d.do(ledger.RegisterIntended{})
	d.do(ledger.RegisterNotTaken{})
	d.do(ledger.Unsealed{})
	_, known, err := l.FindByID(first.ID)
	kit.Check(t, !known && err == nil, "the former identity is known: %v (%v), want it unknown", known, err)
	sound(t, l)
	second := d.sealed()
	second.ID = archive.ID{15: 7}
	d.do(second)
	k, _, err := l.FindByID(second.ID)
	kit.Check(t, k == d.e.Key && err == nil, "the new identity leads to %v (%v), want %s", k, err, d.e.Key)
	k, _, err = l.FindByContent(second.Content)
	kit.Check(t, k == d.e.Key && err == nil, "the content leads to %v (%v), want %s", k, err, d.e.Key)
	sound(t, l)
}

// A bumId that the service gives twice belongs to the clientUUID that had it
// first.
func TestRemote_I8_BelongsToOneIdentityForEver(t *testing.T) { eachStore(t, bindsNumbers) }

func bindsNumbers(t *testing.T, open opener) {
	l := open()
	a, b := newDoc(t, l, 1), newDoc(t, l, 2)
	for _, d := range []*doc{a, b} {
		d.do(d.claim())
		d.do(d.sealed(), ledger.RegisterIntended{})
	}
	crossed := b.ticket()
	crossed.Ticket.Remote = a.ticket().Ticket.Remote
	rs, _ := l.Apply(t.Context(), a.change(a.ticket()), b.change(crossed))
	var taken *ledger.TakenError
	if rs[0].Err != nil || !errors.As(rs[1].Err, &taken) || taken.What != "bumId" || taken.By != a.e.Key {
		t.Fatalf("%v and %v, want the first made and the second taken by it", rs[0].Err, rs[1].Err)
	}
	a.e = rs[0].Entry
	a.do(ledger.WindowClosed{}, ledger.RegisterIntended{})
	again := a.ticket()
	again.Ticket.Remote = crossed.Ticket.Remote
	a.do(again) // the same number for the same clientUUID is fine

	a.do(ledger.WindowClosed{}, ledger.RegisterIntended{})
	a.do(ledger.RegisterRefused{}) // the next generation: another clientUUID
	kit.Need(t, a.e.Generation == 1, "generation = %d, want 1", a.e.Generation)
	a.do(ledger.RegisterIntended{})
	err := a.try(again)
	kit.Check(t, errors.As(err, &taken) && taken.By == a.e.Key, "the number of the first generation for the second: %v, want it taken", err)
	for n, id := range []archive.ID{a.e.FirstID, a.e.FirstID.Generation(1)} {
		k, ok, err := l.FindByID(id)
		kit.Check(t, ok && k == a.e.Key && err == nil, "generation %d leads to %v, %v (%v), want %s", n, k, ok, err, a.e.Key)
	}
	sound(t, l)
}

// An object at the store belongs to the clientUUID whose upload address led to
// it first, whoever signs an address of it later. Once it is archived that
// still holds, after a restart too.
func TestObject_I8_BelongsToOneIdentityForEver(t *testing.T) { eachStore(t, bindsObjects) }

func bindsObjects(t *testing.T, open opener) {
	l := open()
	a, b, c := newDoc(t, l, 1).archived(), newDoc(t, l, 2), newDoc(t, l, 3)
	for _, d := range []*doc{b, c} {
		d.do(d.claim())
		d.do(d.sealed(), ledger.RegisterIntended{})
	}
	at := func(d *doc, url string) ledger.TicketReceived {
		g := d.ticket()
		g.Ticket.URL = archive.PresignedURL(url)
		return g
	}
	var taken *ledger.TakenError
	object := a.e.Registrations[0].Ticket.Object
	if object.IsZero() || a.e.Registrations[0].Ticket.URL != "" {
		t.Fatalf("archived with the ticket %+v, want an object and no address", a.e.Registrations[0].Ticket)
	}
	fresh := "https://STORE.example:443/1-1?sig=SECRET"
	if err := b.try(at(b, fresh)); !errors.As(err, &taken) || taken.What != ledger.TakenObject || taken.By != a.e.Key || strings.Contains(err.Error(), "store") {
		t.Errorf("the address of an archived object: %v, want it taken by %s, without the address", err, a.e.Key)
	}
	// Two answers that are on their way at once are in one gather.
	first, second := at(b, "https://store.example/x?X-Amz-Signature=1"), at(c, "https://store.example/%78?X-Amz-Signature=2")
	rs, _ := l.Apply(t.Context(), b.change(first, ledger.UploadIntended{}), c.change(second, ledger.UploadIntended{}))
	if rs[0].Err != nil || !errors.As(rs[1].Err, &taken) || taken.What != ledger.TakenObject || taken.By != b.e.Key {
		t.Fatalf("%v and %v, want the first made and the second taken by it", rs[0].Err, rs[1].Err)
	}
	b.e = rs[0].Entry
	b.do(ledger.UploadRefused{}, ledger.RegisterIntended{})
	b.do(at(b, "https://store.example/x?X-Amz-Signature=3")) // the same clientUUID may have it again
	b.do(ledger.WindowClosed{}, ledger.RegisterIntended{})
	b.do(ledger.RegisterRefused{}, ledger.RegisterIntended{}) // the next generation is another clientUUID
	if err := b.try(at(b, "https://store.example/x?X-Amz-Signature=4")); b.e.Generation != 1 || !errors.As(err, &taken) || taken.By != b.e.Key {
		t.Errorf("the object of the first generation for the second: %v, want it taken", err)
	}
	sound(t, l)
	l.Close()
	l = open()
	c.l = l
	if err := c.try(at(c, fresh)); !errors.As(err, &taken) || taken.By != a.e.Key {
		t.Errorf("the address of an archived object after a restart: %v, want it taken by %s", err, a.e.Key)
	}
}

// An entry that is registered often lists its first registrations no more.
// Their objects stay its own.
func TestObject_I8_StaysWhenItsRegistrationIsNotListed(t *testing.T) { eachStore(t, bindsUnlisted) }

func bindsUnlisted(t *testing.T, open opener) {
	l := open()
	a, b := newDoc(t, l, 1), newDoc(t, l, 2)
	a.do(a.claim())
	a.do(a.sealed())
	for range 12 {
		a.do(ledger.RegisterIntended{})
		a.do(a.ticket())
		a.do(ledger.WindowClosed{})
	}
	kit.Need(t, a.e.Pruned.Unsent != 0, "the entry lists all its registrations, want the first of them pruned")
	b.do(b.claim())
	b.do(b.sealed(), ledger.RegisterIntended{})
	for n := range 12 {
		crossed := b.ticket()
		crossed.Ticket.URL = archive.PresignedURL(fmt.Sprintf("https://store.example/1-%d?sig=SECRET", n+1))
		var taken *ledger.TakenError
		if err := b.try(crossed); !errors.As(err, &taken) || taken.What != ledger.TakenObject || taken.By != a.e.Key {
			t.Errorf("the object of registration %d: %v, want it taken by %s", n+1, err, a.e.Key)
		}
	}
	sound(t, l)
}

// The digest of an object depends on the ledger's own key: two ledgers have two
// of one address.
func TestObject_I7_DigestIsKeyed(t *testing.T) {
	digests := map[archive.ObjectDigest]bool{}
	for range 2 {
		l := open(t, boltledger.Config{Dir: newLedger(t)})
		d := newDoc(t, l, 1).archived()
		digests[d.e.Registrations[0].Ticket.Object] = true
		kit.Lacks(t, "archived", fmt.Sprintf("%+v", d.e.Registrations[0]), "store.example")
	}
	kit.Want(t, "digests of one address in two ledgers", len(digests), 2)
}

// A rejected document goes the same way again as its successor: the same
// identity, then the same next generation, which the first one had used up.
func TestIdentity_I2_SuccessorTakesGenerationsOver(t *testing.T) { eachStore(t, handsOver) }

func handsOver(t *testing.T, open opener) {
	l := open()
	var before *doc
	for n := range 3 {
		d := newDoc(t, l, 1)
		d.at = d.at.Add(time.Duration(n) * time.Hour)
		d.e.Key = archive.NewKey(d.at)
		d.do(d.claim())
		s := d.sealed()
		if before != nil {
			s.Supersedes = before.e.Key
		}
		d.do(s, ledger.RegisterIntended{}, ledger.RegisterUnanswered{})
		if n != 1 { // the second one never comes to its next generation
			d.do(ledger.RegisterIntended{}, ledger.RegisterRefused{}, ledger.RegisterIntended{})
			kit.Need(t, d.e.Generation == 1, "round %d: generation = %d, want 1", n, d.e.Generation)
			k, _, err := l.FindByID(d.e.ID)
			kit.Check(t, k == d.e.Key, "round %d: generation 1 leads to %v (%v), want %s", n, k, err, d.e.Key)
		}
		d.do(ledger.SentToQuarantine{}, ledger.Closed{})
		before = d
		sound(t, l)
	}
}

func TestContent_FirstUntilRejectedWithoutDoubt(t *testing.T) { eachStore(t, findsContent) }

func findsContent(t *testing.T, open opener) {
	l := open()
	doubted := newDoc(t, l, 1)
	for n := 1; n <= 3; n++ {
		d := newDoc(t, l, n)
		if n == 1 {
			d = doubted
		}
		d.do(d.claim())
		s := d.sealed()
		if s.Content = sum("the same files"); n == 2 {
			s.SameContent = doubted.e.Key
		}
		d.do(s)
		k, ok, err := l.FindByContent(s.Content)
		kit.Check(t, ok && err == nil && k == doubted.e.Key, "document %d: content leads to %s, %v (%v), want %s", n, k, ok, err, doubted.e.Key)
		if n == 2 {
			doubted.do(ledger.SentToQuarantine{}, ledger.Closed{}) // rejected, with an unknown outcome
		}
	}
	first, second := newDoc(t, l, 10), newDoc(t, l, 11)
	for _, d := range []*doc{first, second} {
		d.do(d.claim())
		s := d.sealed()
		s.Content = sum("others")
		d.do(s, ledger.Refused{})
		k, _, err := l.FindByContent(s.Content)
		kit.Check(t, k == d.e.Key, "content leads to %v (%v), want %s: the one before was certainly rejected", k, err, d.e.Key)
	}
	sound(t, l)
}

// numbered claims a document and gives it the number; its seal is returned.
func numbered(d *doc, number byte) ledger.Sealed {
	d.t.Helper()
	d.do(d.claim())
	s := d.sealed()
	s.Number = archive.NumberDigest{number}
	return s
}

// sealNumber seals a document under a number, as the ledger says which other
// one has it, and returns that one.
func sealNumber(d *doc, s ledger.Sealed) archive.Key {
	d.t.Helper()
	after, err := ledger.Transition(d.e, s, archive.Instant{Wall: d.at})
	if err == nil {
		s.SameNumber, _, err = d.l.FindSameNumber(after)
	}
	kit.Must(d.t, err)
	d.do(s)
	return d.e.SameNumber
}

// Two documents with one invoice number that are sealed at once cannot miss
// each other, and of many each names the first.
func TestSameNumber_TwoSealedAtOnceCannotMissEachOther(t *testing.T) { eachStore(t, pairsAtOnce) }

func pairsAtOnce(t *testing.T, open opener) {
	l := open()
	first, second := newDoc(t, l, 1), newDoc(t, l, 2)
	a, b := numbered(first, 1), numbered(second, 1)
	rs, err := l.Apply(t.Context(), first.change(a), second.change(b)) // neither was there when the other one looked
	kit.Need(t, err == nil && rs[0].Err == nil, "%v (%v), want the first one sealed", rs, err)
	taken, ok := errors.AsType[*ledger.TakenError](rs[1].Err)
	if !ok || taken.What != ledger.TakenNumber || taken.By != first.e.Key {
		t.Fatalf("the second one: %v, want its number taken by the first", rs[1].Err)
	}
	first.e = rs[0].Entry
	kit.Want(t, "the one that the second one names", sealNumber(second, b), first.e.Key)
	for n := 3; n < 300; n++ {
		if n == 150 { // numbers are found after a restart too
			l.Close()
			l = open()
		}
		d := newDoc(t, l, n)
		got := sealNumber(d, numbered(d, 1))
		kit.Need(t, got == first.e.Key, "document %d names %s, want the first one, %s", n, got, first.e.Key)
	}
	other := newDoc(t, l, 300)
	kit.Want(t, "the one that another number names", sealNumber(other, numbered(other, 2)), archive.Key{})
	sound(t, l)
}

// Of two documents with one number that are sealed in one commit each is found:
// when the second one is rejected, the first one still has it.
func TestSameNumber_EachOfOneCommitIsFound(t *testing.T) { eachStore(t, pairsInACommit) }

func pairsInACommit(t *testing.T, open opener) {
	l := open()
	first, second, third := newDoc(t, l, 1), newDoc(t, l, 2), newDoc(t, l, 3)
	a, b := numbered(first, 1), numbered(second, 1)
	b.SameNumber = first.e.Key
	rs := applied(t, l, first.change(a), second.change(b))
	second.e = rs[1].Entry
	second.do(ledger.Refused{})
	kit.Want(t, "the one that the third one names", sealNumber(third, numbered(third, 1)), first.e.Key)
	sound(t, l)
}

// A document that was certainly rejected does not count, one that was rejected
// with an unknown outcome does. When the first is gone, those that named it
// still name each other.
func TestSameNumber_CertainlyRejectedDoesNotCount(t *testing.T) { eachStore(t, passesRejected) }

func passesRejected(t *testing.T, open opener) {
	l := open()
	first, second, third := newDoc(t, l, 1), newDoc(t, l, 2), newDoc(t, l, 3)
	sealNumber(first, numbered(first, 1))
	sealNumber(second, numbered(second, 1))
	first.do(ledger.Refused{})
	kit.Want(t, "the one that the third one names", sealNumber(third, numbered(third, 1)), second.e.Key)
	second.do(ledger.Refused{})
	third.do(ledger.SentToQuarantine{}, ledger.Closed{}) // it may be in the archive
	fourth := newDoc(t, l, 4)
	kit.Want(t, "the one that the fourth one names", sealNumber(fourth, numbered(fourth, 1)), third.e.Key)
	fourth.do(ledger.Refused{})
	fifth := newDoc(t, l, 5)
	s := numbered(fifth, 1)
	s.Supersedes = third.e.Key
	if after, err := ledger.Transition(fifth.e, s, archive.Instant{}); err != nil {
		t.Fatal(err)
	} else if k, ok, err := l.FindSameNumber(after); ok || err != nil {
		t.Errorf("a document that is dropped again names %v, %v (%v), want none", k, ok, err)
	}
	sound(t, l)
}

// I12: of two documents with the same number and the same files the second names the
// first for both. It cannot miss it where both are sealed at once.
func TestSameNumber_I12_WithTheSameFiles(t *testing.T) { eachStore(t, sameNumberWithTheSameFiles) }

func sameNumberWithTheSameFiles(t *testing.T, open opener) {
	l := open()
	first, second := newDoc(t, l, 1), newDoc(t, l, 2)
	a, b := numbered(first, 1), numbered(second, 1)
	b.Content = a.Content
	rs, err := l.Apply(t.Context(), first.change(a), second.change(b))
	kit.Need(t, err == nil && rs[0].Err == nil, "%v (%v), want the first one sealed", rs, err)
	if taken, ok := errors.AsType[*ledger.TakenError](rs[1].Err); !ok || taken.What != ledger.TakenFiles || taken.By != first.e.Key {
		t.Fatalf("the second one: %v, want its files taken by the first", rs[1].Err)
	}
	b.SameContent = first.e.Key
	kit.Want(t, "the one that the second one names for its number", sealNumber(second, b), first.e.Key)
	sound(t, l)
}

// An entry that is opened from a receipt names the other one, too.
func TestSameNumber_AfterARebuild(t *testing.T) { eachStore(t, sameNumberAfterARebuild) }

func sameNumberAfterARebuild(t *testing.T, open opener) {
	l := open()
	var docs []*doc
	for n := 1; n <= 2; n++ {
		d := newDoc(t, l, n)
		s := d.sealed()
		c := d.change(ledger.Recovered{Vault: "V1", State: ledger.Archived, Source: ledger.Gone, ID: s.ID, Content: s.Content, Metadata: s.Metadata, Package: s.Package,
			Seal: s.Seal, Number: archive.NumberDigest{1}, Remote: archive.RemoteID(fmt.Sprint("bum-", n)), SuccessRecord: []byte("{}"), ArchivedAt: began})
		c.Document = &d.own
		d.e = applied(t, l, c)[0].Entry
		docs = append(docs, d)
	}
	kit.Want(t, "the one that the first one names", docs[0].e.SameNumber, archive.Key{})
	kit.Want(t, "the one that the second one names", docs[1].e.SameNumber, docs[0].e.Key)
	sound(t, l)
}

// The check finds a pair of numbers that differ, and a number that leads to no
// entry.
func TestVerify_I14_InvoiceNumbers(t *testing.T) {
	for name, row := range map[string]struct {
		field string
		value func([]byte) []byte
	}{
		"OtherNumber":  {"Entry.Number", another},
		"NoSuchEntry":  {"Entry.SameNumber", another},
		"ForgotNumber": {"Entry.Number", func([]byte) []byte { return nil }},
	} {
		t.Run(name, func(t *testing.T) {
			dir := newLedger(t)
			l := open(t, boltledger.Config{Dir: dir})
			first, second := newDoc(t, l, 1), newDoc(t, l, 2)
			sealNumber(first, numbered(first, 1))
			sealNumber(second, numbered(second, 1))
			kit.Must(t, l.Close())
			edit(t, dir, func(tx *bbolt.Tx) error {
				return setField(t, tx, openBucket, second.e.Key[:], row.field, row.value)
			})
			ps, err := open(t, boltledger.Config{Dir: dir}).Verify(t.Context())
			kit.Check(t, err == nil && len(ps) != 0, "the check found %v (%v), want a problem", ps, err)
		})
	}
}
