package boltledger

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.etcd.io/bbolt"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// mostAsking bounds the notices that wait for an operator. Further ones are
// kept as all notices are.
const mostAsking = 1000

// AskingNotices returns the kept notices upon which an operator must act and
// that are about no document that was sent, see
// [archive.Notification.AsksPerson]: of a sent one its entry says so. They stay
// until they are closed.
func (l *Ledger) AskingNotices() (ids []archive.AcknowledgementID, err error) {
	err = l.view(func(tx *bbolt.Tx) error {
		ids = readAsking(tx)
		return nil
	})
	return ids, err
}

func readAsking(tx *bbolt.Tx) (ids []archive.AcknowledgementID) {
	for line := range strings.SplitSeq(string(tx.Bucket(metaBucket).Get(askingKey)), "\n") {
		if line != "" {
			ids = append(ids, archive.AcknowledgementID(line))
		}
	}
	return ids
}

// noteAsking notes that a notice waits for an operator, or that it does not.
func (g *groupCommit) noteAsking(id archive.AcknowledgementID, asks bool) error {
	all := readAsking(g.tx)
	if i := slices.Index(all, id); asks == (i >= 0) || asks && len(all) >= mostAsking {
		return nil
	} else if asks {
		all = append(all, id)
	} else {
		all = slices.Delete(all, i, i+1)
	}
	if len(all) == 0 {
		return g.tx.Bucket(metaBucket).Delete(askingKey)
	}
	var text strings.Builder
	for _, one := range all {
		text.WriteString(string(one) + "\n")
	}
	return g.tx.Bucket(metaBucket).Put(askingKey, []byte(text.String()))
}

// CloseNotice ends that a notice waits for an operator, with a line of the
// journal about the document that it names. The error wraps [ledger.ErrIllegal]
// where it does not wait.
func (l *Ledger) CloseNotice(ctx context.Context, id archive.AcknowledgementID, about archive.RemoteID, by ledger.Operator, note *ledger.Note, at time.Time) error {
	// One commit: after a crash the act is in the journal and the notice is closed, or neither.
	return l.askCommitter(ctx, func(g *groupCommit) (refused, err error) {
		if !slices.Contains(readAsking(g.tx), id) {
			return fmt.Errorf("close the notification %q: it does not wait for a person: %w", id, ledger.ErrIllegal), nil
		}
		refused, err = markRequest{mark: ledger.Mark{Name: ledger.MarkNoticeClosed, Remote: about, By: by, At: at}, note: note}.apply(g)
		if refused != nil || err != nil {
			return refused, err
		}
		return nil, g.noteAsking(id, false)
	})
}
