package ingest_test

import (
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/test/kit"
)

// interrupted is a ledger in which an operator changes an entry each time just before the outcome of its upload is committed. The entry is
// on hold after that.
type interrupted struct {
	*boltledger.Ledger
	r       *running
	changes int // that the operator made
}

func (l *interrupted) Submit(cs []ledger.Change, then func([]ledger.Result)) {
	for _, c := range cs {
		for _, ev := range c.Events {
			if _, is := ev.(ledger.DeliveryConfirmed); is {
				l.interrupt(c.Key)
			}
		}
	}
	l.Ledger.Submit(cs, then)
}

func (l *interrupted) interrupt(k archive.Key) {
	e, _, err := l.Entry(k)
	kit.Must(l.r.t, err)
	acts := []ledger.Event{ledger.Held{}}
	if e.Hold {
		acts = []ledger.Event{ledger.Unheld{}, ledger.Held{}}
	}
	l.changes += len(acts)
	l.Ledger.Submit([]ledger.Change{{Key: k, Rev: e.Rev, Events: acts, At: l.r.s.now()}}, nil)
}

// I12: an operator holds a PDF while the store takes it, and acts once more. What the store said is what happened: the document is
// delivered, and it neither goes out again nor waits for a decision.
func TestFact_I12_DeliveredWhileAnOperatorActs(t *testing.T) {
	kit.ParallelBubble(t, func(t *testing.T) {
		pdf := &service{}
		r := buildPDF(t, pdf, "scans")
		l := &interrupted{Ledger: r.ledger, r: r}
		r.cfg.Ledger = l
		r.start()
		r.dropPDF("scans", 1)
		r.pass(time.Hour)
		kit.Need(t, l.changes > 0, "changes of the operator = %d, want more than 0", l.changes)
		e := r.entries()[0]
		kit.Want(t, "on hold", e.Hold, true)
		r.apply(ledger.Change{Key: e.Key, Rev: e.Rev, Events: []ledger.Event{ledger.Unheld{}}})
		r.Wake()
		r.pass(time.Hour)
		kit.Want(t, "states", r.states(), states{ledger.Delivered: 1})
		kit.Want(t, "uploads", len(pdf.uploaded), 1)
	})
}
