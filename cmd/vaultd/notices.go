package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/networkapi"
	"vaultd/internal/operator"
	"vaultd/internal/present"
	"vaultd/internal/sanitize"
)

func (a *app) noticesCommand() *cobra.Command {
	var all bool
	var reason string
	c := &cobra.Command{
		Use:   "notices [close ID]",
		Short: "what the business network told of documents",
		Long: `Lists the notifications of the business network that vaultd keeps, the oldest first: when it
was told, what, and about which document. Each is kept as it came, and for as long as the
ledger. One about a document that this ledger does not know is marked foreign: it is kept
and not acknowledged, because another program may wait for it.

A word about early payment or a discount calls a person. About a document that was sent,
vaultd close ends that. About one that came in, or that this ledger does not know, it is
listed with its ID, and close ID with a --reason ends it; it stays kept as it is.

Without --all the newest 200 are listed. With --json each notification is an object, all of
them. Addresses that the network put into a notification are not shown.`,
		Example: `  vaultd notices
  vaultd notices --json | jq -r 'select(.foreign) | .document'
  vaultd notices close 5f0e1c2d --reason "paid early, by phone"`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			if len(args) != 2 || args[0] != "close" {
				return usageError{fmt.Errorf("%q is nothing that notices does; it lists, or: vaultd notices close ID", strings.Join(args, " "))}
			}
			return requireReason(c, reason)
		},
		RunE: func(c *cobra.Command, args []string) error {
			return a.withLedger(c, args, func(ctx context.Context, v view) error {
				if len(args) > 0 {
					return a.closeNotice(ctx, v, archive.AcknowledgementID(args[1]), strings.TrimSpace(reason))
				}
				return a.listNotices(v, all)
			})
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "of close: why, in words for whoever asks later")
	c.Flags().BoolVar(&all, "all", false, "all that are kept")
	return c
}

// closeNotice commits that a person has acted upon a notification.
func (a *app) closeNotice(ctx context.Context, v view, id archive.AcknowledgementID, reason string) error {
	held, err := v.ledger.HeldNotices([]archive.AcknowledgementID{id})
	if err != nil {
		return err
	}
	var about archive.RemoteID
	if told, err := networkapi.ReadNotification(held[id].Raw); err == nil {
		about = told.Document
	}
	by, note := operator.Person{UID: a.uid, Reason: reason}.Sign()
	err = v.ledger.CloseNotice(ctx, id, about, by, note, v.Now)
	if errors.Is(err, ledger.ErrIllegal) {
		return fail(exitFailed, fmt.Errorf("notification %q waits for nobody", id), "see vaultd status; about a document that was sent: vaultd close X")
	}
	if err == nil {
		fmt.Fprintf(a.stdout, "notification %s is closed; it stays kept\n", sanitize.Text(string(id)))
	}
	return err
}

// findAskingNotices names the notifications upon which a person must act.
func (v view) findAskingNotices() (n present.ArrivalNeeds, err error) {
	ids, err := v.ledger.AskingNotices()
	if err != nil || len(ids) == 0 {
		return n, err
	}
	n.Count = len(ids)
	held, err := v.ledger.HeldNotices(ids[:min(len(ids), present.NamedAtMost)])
	for _, id := range ids[:min(len(ids), present.NamedAtMost)] {
		told, err := networkapi.ReadNotification(held[id].Raw)
		if err != nil {
			continue
		}
		about := "which this ledger does not know"
		if !held[id].Arrival.IsZero() {
			about = "which came in"
		}
		n.Names = append(n.Names, fmt.Sprintf("%s: about %s, %s: %s", id, told.Document, about, present.AdviseOnAsked(told.Pair())))
	}
	return n, err
}

// noticeJSON is one object of "notices --json".
type noticeJSON struct {
	ID           string     `json:"id"`       // its number at the network
	Document     string     `json:"document"` // the bumId of the document
	Key          string     `json:"key"`      // of the entry; empty: foreign, or received
	Folder       string     `json:"folder"`
	DocumentType string     `json:"documentType"`
	Response     string     `json:"responseCode"`
	Action       string     `json:"actionCode"`
	Created      *time.Time `json:"created"` // by the network
	Seen         *time.Time `json:"seen"`    // by this machine
	Description  string     `json:"description"`
	Foreign      bool       `json:"foreign"`
	Received     bool       `json:"received"`   // it is about a document that came in
	Unfamiliar   bool       `json:"unfamiliar"` // its codes are not known, so nothing was concluded from it
}

func newNoticeJSON(v view, n ledger.Notice) (noticeJSON, error) {
	told, err := networkapi.ReadNotification(n.Raw)
	if err != nil {
		return noticeJSON{}, fmt.Errorf("notification %q: %w", n.ID, err)
	}
	j := noticeJSON{ID: string(n.ID), Document: string(told.Document), DocumentType: told.DocumentType, Response: told.Response, Action: told.Action, Created: timeJSON(told.Created),
		Seen: timeJSON(n.Seen), Description: told.Description, Foreign: n.IsForeign(), Received: !n.Arrival.IsZero(), Unfamiliar: n.Unknown}
	if n.Entry.IsZero() {
		return j, nil
	}
	e, known, err := v.ledger.Entry(n.Entry)
	if err == nil && !known {
		err = errors.New("its entry is missing; see vaultd verify")
	}
	j.Key, j.Folder = n.Entry.String(), e.Folder
	return j, err
}

// newestNotices is how many notifications are listed unless all are asked for.
const newestNotices = 200

// keptNotice is a place in the list of notifications.
type keptNotice struct {
	seen time.Time
	id   archive.AcknowledgementID
}

// listNotices lists the notifications in the order in which they were kept. Only their numbers are held at once.
func (a *app) listNotices(v view, all bool) error {
	var kept []keptNotice
	err := v.ledger.Notices(func(n ledger.Notice) error {
		kept = append(kept, keptNotice{n.Seen, n.ID})
		return nil
	})
	if err != nil {
		return err
	}
	slices.SortStableFunc(kept, func(x, y keptNotice) int { return x.seen.Compare(y.seen) })
	if !all && !a.json {
		kept = kept[max(0, len(kept)-newestNotices):]
	}
	t := present.NewTable(a.stdout, "TOLD", "WHAT", "DOCUMENT", "ABOUT")
	err = eachNotice(v, kept, func(j noticeJSON) error {
		if a.json {
			return writeJSON(a.stdout, j)
		}
		t.AppendRow(describeNotice(v, j))
		return nil
	})
	switch {
	case err != nil:
		return err
	case a.json:
	case len(kept) == 0:
		fmt.Fprintln(a.stdout, "The business network has told nothing yet.")
	default:
		t.Render()
	}
	return nil
}

// eachNotice calls fn with each of the notifications, in their order.
func eachNotice(v view, kept []keptNotice, fn func(noticeJSON) error) error {
	for part := range slices.Chunk(kept, 500) {
		var ids []archive.AcknowledgementID
		for _, k := range part {
			ids = append(ids, k.id)
		}
		held, err := v.ledger.HeldNotices(ids)
		if err != nil {
			return err
		}
		for _, id := range ids {
			j, err := newNoticeJSON(v, held[id])
			if err == nil {
				err = fn(j)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// describeNotice is one row of the table.
func describeNotice(v view, j noticeJSON) table.Row {
	what := archive.Notification{Response: j.Response, Action: j.Action}.Pair()
	if j.Unfamiliar {
		what += " (not known)"
	}
	about := sanitize.Text(j.Folder)
	if j.Foreign {
		about = "foreign: kept, not acknowledged"
	}
	if j.Received {
		about = "a received document"
	}
	when := j.Seen
	if j.Created != nil {
		when = j.Created
	}
	return present.TableRow(v.Brief(*when), what, sanitize.Text(j.Document), about)
}
