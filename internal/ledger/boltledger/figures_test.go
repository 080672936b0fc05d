package boltledger_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/test/kit"
)

// flipAll spoils every record of a bucket.
func flipAll(bucket []byte) func(*bbolt.Tx) error {
	return func(tx *bbolt.Tx) (err error) {
		var keys [][]byte
		err = tx.Bucket(bucket).ForEach(func(k, _ []byte) error { keys = append(keys, bytes.Clone(k)); return nil })
		for _, k := range keys {
			err = errors.Join(err, tx.Bucket(bucket).Put(k, flipped(tx.Bucket(bucket).Get(k))))
		}
		return err
	}
}

func hasToken(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// A total or a count that cannot be read ends no commit. The commit reports it,
// the check finds it, and a recount replaces it.
func TestCommit_I23_AFigureThatCannotBeRead(t *testing.T) {
	source, _ := filled(t)
	for name, bucket := range map[string][]byte{"Totals": totalsBucket, "Counts": countsBucket} {
		t.Run(name, func(t *testing.T) {
			dir := copyLedger(t, source, fileName, headName)
			edit(t, dir, flipAll(bucket))
			l := open(t, boltledger.Config{Dir: dir})
			for n := 13; n <= 15; n++ {
				newDoc(t, l, n).archived()
			}
			kit.Want(t, "damage was reported", hasToken(l.FigureDamage()), true)
			ps, err := l.Verify(t.Context())
			kit.Need(t, err == nil && len(ps) != 0 && boltledger.AreOfFigures(ps),
				"the check found %v (%v), want problems of figures alone", ps, err)
			kit.Must(t, l.RecountFigures(t.Context()))
			sound(t, l)
			newDoc(t, l, 16).archived()
			kit.Want(t, "damage was reported after the recount", hasToken(l.FigureDamage()), false)
			sound(t, l)
		})
	}
}

// A recount from entries that cannot be read is refused: its figures would look
// correct.
func TestRecountFigures_I12_NotFromDamage(t *testing.T) {
	source, _ := filled(t)
	for name, bucket := range map[string][]byte{"Entry": doneBucket} {
		t.Run(name, func(t *testing.T) {
			dir := copyLedger(t, source, fileName, headName)
			edit(t, dir, func(tx *bbolt.Tx) error {
				k, v := tx.Bucket(bucket).Cursor().First()
				return errors.Join(tx.Bucket(bucket).Put(bytes.Clone(k), flipped(v)), flipAll(totalsBucket)(tx))
			})
			before := dump(t, dir)
			l := open(t, boltledger.Config{Dir: dir})
			err := l.RecountFigures(t.Context())
			_, damaged := errors.AsType[*ledger.DamageError](err)
			kit.Check(t, damaged, "recount: %v, want damage", err)
			ps, err := l.Verify(t.Context())
			kit.Check(t, err == nil && !boltledger.AreOfFigures(ps), "the check found %v (%v), want more than figures", ps, err)
			kit.Must(t, l.Close())
			kit.Want(t, "records", dump(t, dir), before)
			newDoc(t, open(t, boltledger.Config{Dir: dir}), 20).archived()
		})
	}
}

// Two successes of one document are two transactions, each in its month; those
// of unknown size are counted apart. A recount finds the same, and so does one
// whose months begin elsewhere.
func TestTotals_SuccessesByMonthAndWhatHasNoSize(t *testing.T) {
	dir := newLedger(t)
	l := open(t, boltledger.Config{Dir: dir})
	d := newDoc(t, l, 1)
	d.at = time.Date(2026, 11, 30, 22, 30, 0, 0, time.UTC) // archived an hour later
	d.do(d.claim())
	d.do(d.sealed())
	d.do(ledger.RegisterIntended{})
	d.do(d.ticket(), ledger.UploadIntended{})
	refused := d.e.Current().Ticket.Remote
	d.do(ledger.UploadRefused{})
	d.do(ledger.RegisterIntended{})
	d.do(d.ticket(), ledger.UploadIntended{})
	d.do(d.accepted())
	d.do(d.success())
	d.do(ledger.StatusSeen{Receipt: archive.Receipt{Remote: refused, Status: archive.Successful, Updated: time.Date(2027, 1, 2, 0, 0, 0, 0, time.UTC), Record: []byte("{}")}, Grace: time.Hour})
	kit.Need(t, d.e.IsArchivedTwice(), "registrations = %+v, want two successes", d.e.Registrations)
	found := newDoc(t, l, 2)
	at := time.Date(2026, 11, 3, 0, 0, 0, 0, time.UTC)
	found.do(ledger.Recovered{Route: ledger.Vault, Vault: "V1", Drop: "acme", Folder: "x", ID: archive.ID{15: 9}, Remote: "R9", SuccessRecord: []byte("{}"),
		State: ledger.Archived, Source: ledger.Gone, SeenAt: at, ArchivedAt: at}, ledger.Reconciled{})
	last, late := d.e.ArchivedAt, time.Date(2027, 1, 2, 0, 0, 0, 0, time.UTC)
	for zone, want := range map[*time.Location][]ledger.Total{
		time.UTC: {{Vault: "V1", Year: 2026, Month: 11, Documents: 2, Unsized: 1, Bytes: 1001, Last: last}, {Vault: "V1", Year: 2027, Month: 1, Documents: 1, Bytes: 1001, Last: late}},
		time.FixedZone("Europe/Somewhere", 3600): {{Vault: "V1", Year: 2026, Month: 11, Documents: 1, Unsized: 1, Last: at},
			{Vault: "V1", Year: 2026, Month: 12, Documents: 1, Bytes: 1001, Last: last}, {Vault: "V1", Year: 2027, Month: 1, Documents: 1, Bytes: 1001, Last: late}},
	} {
		l.Close()
		l = open(t, boltledger.Config{Dir: dir, Location: zone})
		kit.Want(t, fmt.Sprint(zone), kit.Value(l.Totals())(t), want)
		sound(t, l)
	}
}
