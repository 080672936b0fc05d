package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"vaultd/internal/archive"
	"vaultd/internal/catalog"
	"vaultd/internal/ledger"
	"vaultd/internal/present"
	"vaultd/internal/sanitize"
)

const (
	listed    = 100 // rows of a table unless more are asked for
	tableRows = 500 // that are held to align their columns
)

var errEnough = errors.New("enough")

// sortedAtOnce bounds what a sorted list holds in memory, some 200 bytes for each.
const sortedAtOnce = 100_000

// listFilter says which entries are wanted, and in which order.
type listFilter struct {
	catalog.Filter
	catalog.Sorting
	limit int // 0: all
}

var listHelp = `Lists what was taken from the drop folders, newest first. With --json each line is
an object with the same keys; times are in UTC, and what is not known is null.

--since and --until choose by when a folder was taken. A time is a day in your zone
(2026-11-20; as --until the whole day counts), a day with a time ("2026-11-20 14:30"),
RFC 3339 (2026-11-20T13:30:00Z), or how long ago: 24h, 7d, 1d12h.

--number and --sender choose by words that occur in the invoice number or the sender's name
(upper and lower case are the same, and so are ü, ue and u), --type by the kind of document:
` + strings.Join(archive.DocumentTypes, " ") + `. They look at what was
sent, and of a rejected folder or a duplicate at what its sidecar says, which nobody checked.

--route chooses by where it goes: vault (to the archive), pdf (to the accounts-payable
system, as a single PDF) or network (over the business network, to the recipient).

--sort orders by seen (the newest first), archived or delivered (the newest first), folder,
drop, state (in the order below), size (the largest first), number or sender, date (the newest
invoice first) or amount (the largest first, whatever the currency); what has no such value comes
last, and what is equal stands newest first. --reverse turns the order round. By seen the first
line comes at once. Any other order reads the whole catalog before, about a second for a
million folders, and once more for each 100,000 lines; it holds no more than that many in memory.

--after KEY goes on behind the folder with this key, in the same order: give it the last key
of the page before, which stands below a table. What was taken since stands before the
first page; a folder whose place has changed since may come twice or not at all.

States: ` + strings.Join(stateNames()[:7], " ") + `
` + strings.Join(stateNames()[7:], " ") + `,
and open for all that are on their way.`

func (a *app) listCommand() *cobra.Command {
	var f listFilter
	var states, since, until, by, route, number, sender, kind, after string
	c := &cobra.Command{
		Use:   "list",
		Short: "every folder that was ever taken, newest first",
		Long:  listHelp,
		Example: `  vaultd list
  vaultd list --state rejected,quarantined
  vaultd list --drop acme-in --limit 0
  vaultd list --since 7d --sort size
  vaultd list --sender "Müller & Söhne" --type CreditNote --sort amount
  vaultd list --since 2026-10-01 --until 2026-10-31 --reverse --limit 0
  vaultd list --json | jq -r 'select(.archivedAt == null) | .folder'`,
		Args: expectArgs(),
		RunE: func(c *cobra.Command, args []string) (err error) {
			wanted, err := parseStates(states)
			if err != nil {
				return err
			}
			f.States = statesIn(wanted)
			if f.limit < 0 {
				return usageError{errors.New("--limit is negative; 0 lists all")}
			}
			if f.By, err = parseOrder(by); err != nil {
				return err
			}
			if f.Route, err = parseRoute(route); err != nil {
				return err
			}
			if err := f.setTexts(kind, number, sender); err != nil {
				return err
			}
			if f.After, err = parseAfter(after); err != nil {
				return err
			}
			if a.json && !c.Flags().Changed("limit") {
				f.limit = 0
			}
			// Times are read where the command runs: inside the daemon "7d" counts from the daemon's clock.
			return a.withLedger(c, args, func(ctx context.Context, v view) error {
				if err := f.setTimeBounds(v.Clock, since, until); err != nil {
					return err
				}
				return a.runList(ctx, v, f)
			})
		},
	}
	c.Flags().StringVar(&states, "state", "", "only these `states`, separated by commas")
	c.Flags().StringVar(&f.Drop, "drop", "", "only what came from the drop of this `name`")
	c.Flags().StringVar(&f.Vault, "vault", "", "only what goes to the vault of this `id`")
	c.Flags().StringVar(&route, "route", "", "only what goes by this `route`: "+strings.Join(routeNames, " or "))
	c.Flags().StringVar(&number, "number", "", "only invoice numbers with these `words`")
	c.Flags().StringVar(&sender, "sender", "", "only senders with these `words` in the name")
	c.Flags().StringVar(&kind, "type", "", "only documents of this `type`: "+strings.Join(archive.DocumentTypes, ", "))
	c.Flags().IntVar(&f.limit, "limit", listed, "at most so many; 0: all (the default with --json)")
	c.Flags().StringVar(&since, "since", "", "only what was taken at this `time` or later")
	c.Flags().StringVar(&until, "until", "", "only what was taken before this `time`, or on this day")
	c.Flags().StringVar(&by, "sort", "seen", "the `order`: "+strings.Join(orderNames, ", "))
	c.Flags().BoolVar(&f.Reverse, "reverse", false, "the other way round: with --sort seen the oldest first")
	c.Flags().StringVar(&after, "after", "", "only what comes behind the folder with this `key`")
	return c
}

func stateNames() []string {
	var names []string
	for _, s := range ledger.States() {
		names = append(names, s.String())
	}
	return names
}

func parseStates(text string) (map[ledger.State]bool, error) {
	states := map[ledger.State]bool{}
	for word := range strings.FieldsFuncSeq(strings.ToLower(text), func(r rune) bool { return r == ',' || r == ' ' }) {
		s, err := ledger.ParseState(word)
		switch {
		case word == "open":
			for _, s := range ledger.States() {
				states[s] = s.IsOpen()
			}
		case err != nil || s == ledger.None:
			return nil, usageError{fmt.Errorf("%q is no state; known are %s, and open", word, strings.Join(stateNames(), " "))}
		default:
			states[s] = true
		}
	}
	return states, nil
}

// statesIn returns the states of a set in the order of the ledger.
func statesIn(set map[ledger.State]bool) (states []ledger.State) {
	for _, s := range ledger.States() {
		if set[s] {
			states = append(states, s)
		}
	}
	return states
}

// walkList calls fn with each entry that f selects, in the order of f, and with its details. It reads catalog and ledger in parts,
// so that a slow reader blocks nobody. more says that the limit left some out.
func (a *app) walkList(ctx context.Context, v view, f listFilter, fn func(e ledger.Entry, d present.Details) error) (more bool, err error) {
	n := 0
	each := func(e ledger.Entry) error {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case f.limit > 0 && n == f.limit:
			return errEnough
		}
		n++
		d, err := present.ReadDetails(v.ledger, e, v.Location)
		if err != nil {
			return err
		}
		return fn(e, d)
	}
	if !f.After.IsZero() {
		if _, ok, err := v.ledger.Entry(f.After); err != nil || !ok {
			return false, errors.Join(err, usageError{fmt.Errorf("--after: no folder has the key %s", f.After)})
		}
	}
	c, release := v.openCatalog()
	part := sortedAtOnce
	if f.limit > 0 {
		part = min(part, f.limit+1) // one more than is told: it says that the limit left some out
	}
	err = c.List(ctx, f.Filter, f.Sorting, part, a.tellLongSearch, each)
	if errors.Is(err, errEnough) {
		return true, release()
	}
	return false, errors.Join(err, release())
}

func (a *app) runList(ctx context.Context, v view, f listFilter) error {
	if a.json {
		_, err := a.walkList(ctx, v, f, func(e ledger.Entry, d present.Details) error {
			return writeJSON(a.stdout, present.NewListRow(v.Clock, e, d))
		})
		return err
	}
	return a.listTable(ctx, v, f)
}

func (a *app) listTable(ctx context.Context, v view, f listFilter) error {
	header := []string{"FOLDER", "STATE", "DOCUMENTID", "DROP", "SINCE", "BUMID", "REASON"}
	t, rows := present.NewTable(a.stdout, header...), 0
	var last archive.Key
	more, err := a.walkList(ctx, v, f, func(e ledger.Entry, d present.Details) error {
		rows++
		last = e.Key
		t.AppendRow(present.TableRow(present.FolderCell(e.Folder), present.StateText(e), d.NumberCell(), sanitize.Text(e.Drop), v.Brief(present.LastProgress(e)), sanitize.Text(string(present.RemoteNumber(e))), d.DescribeReason(v.Clock, e)))
		if rows%tableRows == 0 { // a part of a long table is aligned by itself, so that it need not be held
			t.Render()
			t = present.NewTable(a.stdout)
		}
		return nil
	})
	if rows%tableRows != 0 { // those before an error too: an answer that is not complete ends with one
		t.Render()
	}
	switch {
	case err != nil:
		return err
	case rows == 0:
		fmt.Fprintln(a.stderr, "nothing found")
		return nil
	}
	if more {
		which := "first"
		switch {
		case !f.After.IsZero():
			which = "next"
		case f.Sorting == (catalog.Sorting{}):
			which = "newest"
		}
		fmt.Fprintf(a.stderr, "the %s %d; --after %s goes on, --limit 0 lists all\n", which, f.limit, last)
	}
	return nil
}
