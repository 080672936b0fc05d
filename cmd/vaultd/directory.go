package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"vaultd/internal/apicall"
	"vaultd/internal/config"
	"vaultd/internal/networkapi"
	"vaultd/internal/present"
	"vaultd/internal/sanitize"
)

func (a *app) directoryCommand() *cobra.Command {
	var q networkapi.DirectoryQuery
	c := &cobra.Command{
		Use:   "directory SIREN|SIRET",
		Short: "what the directory of France says of a company: whether it can be invoiced, and where",
		Long: `Asks the business network's directory of France for a company by its SIREN (9 digits),
or for one of its facilities by its SIRET (14 digits), and prints its lines: where an
invoice may be addressed, how it is routed, and until when. Blanks in the number do not
matter.

The first words say whether a line is valid today, by the day in France: VALID TODAY, or
NO VALID LINE TODAY. A line without an end is valid. One whose end cannot be read is not,
and neither is one of another company, suffix or routing identifier than was asked for.
Statuses are shown as the directory writes them, and do not count.

It needs the section network of the configuration. It changes nothing, keeps nothing and
needs no ledger. With --json each line of the directory is an object.

Exit code: 0 with a line that is valid today, 4 without one.`,
		Example: `  vaultd directory 552100554
  vaultd directory "552 100 554 00013"
  vaultd directory 552100554 --json | jq -r 'select(.validToday) | .addressing'`,
		Args: func(_ *cobra.Command, args []string) (err error) {
			q, err = completeQuery(q, args)
			return err
		},
		// An answer is asked for each time, and nothing is kept of it.
		RunE: func(c *cobra.Command, args []string) error {
			return a.runWithoutLedger(c, args, func(ctx context.Context, cfg config.Config) error { return a.askDirectory(ctx, cfg, q) })
		},
	}
	c.Flags().StringVar(&q.Suffix, "suffix", "", "only lines with this addressing `suffix`")
	c.Flags().StringVar(&q.Routing, "routing", "", "only lines with this routing `identifier`")
	return c
}

// completeQuery puts the number of the arguments into a query. A person may write a number in groups, with blanks of any kind.
func completeQuery(q networkapi.DirectoryQuery, args []string) (networkapi.DirectoryQuery, error) {
	if len(args) == 0 {
		return q, usageError{errors.New("SIREN or SIRET is missing")}
	}
	number := strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, strings.Join(args, ""))
	others := strings.Trim(number, "0123456789")
	switch {
	case others != "":
		return q, usageError{fmt.Errorf("%q is neither a SIREN nor a SIRET: they have digits alone", sanitize.Name(number, 40))}
	case len(number) == networkapi.SIRENDigits:
		q.SIREN, q.SIRET = number, ""
	case len(number) == networkapi.SIRETDigits:
		q.SIRET, q.SIREN = number, ""
	default:
		return q, usageError{fmt.Errorf("%s is neither a SIREN nor a SIRET: it has %s; a SIREN has 9, a SIRET 14", cmp.Or(sanitize.Name(number, 40), `""`),
			present.FormatCount(len(number), "digit", "digits"))}
	}
	if err := q.Check(); err != nil {
		return q, usageError{err}
	}
	return q, nil
}

// directoryLineJSON is one object of "directory --json". What the directory does not tell is null.
type directoryLineJSON struct {
	ValidToday   bool            `json:"validToday"` // it counts: it is of whom was asked for, and has not ended
	Asked        bool            `json:"asked"`      // it is of whom was asked for
	SIREN        *string         `json:"siren"`
	SIRET        *string         `json:"siret"`
	Company      *string         `json:"company"`
	Status       *string         `json:"status"`
	Facility     *string         `json:"facility"`
	FacilitySays *string         `json:"facilityStatus"`
	Addressing   *string         `json:"addressing"`
	Suffix       *string         `json:"suffix"`
	Routing      *string         `json:"routing"`
	To           *string         `json:"to"`
	EffectiveEnd *string         `json:"effectiveEnd"`
	Line         json.RawMessage `json:"line"` // as the directory told it
}

// directoryAnswer is what the directory says on one day.
type directoryAnswer struct {
	query networkapi.DirectoryQuery
	lines []networkapi.DirectoryLine
	today time.Time // in France
}

// counts reports whether a line is of whom was asked for, and valid today.
func (d directoryAnswer) counts(l networkapi.DirectoryLine) bool {
	return d.query.Matches(l) && l.IsValidOn(d.today)
}

// askDirectory asks the directory, prints its answer and ends with 4 where no line is valid.
func (a *app) askDirectory(ctx context.Context, cfg config.Config, q networkapi.DirectoryQuery) error {
	if cfg.Network.BaseURL == "" {
		return fail(exitConfig, errors.New("the business network is not configured, and it has the directory"), "add a section network with base_url and auth; docs/network.md says how")
	}
	france, err := networkapi.LocationOfFrance()
	if err != nil {
		return err
	}
	client, err := newNetworkClient(cfg, a.env)
	if err != nil {
		return err
	}
	lines, err := client.Directory(ctx, q)
	if err != nil {
		e := apicall.AsError(err)
		return fail(exitCodeOfRemote(e), err, adviseOnNetwork(e, mayAskDirectory))
	}
	d := directoryAnswer{query: q, lines: lines, today: time.Now().In(france)}
	if err := a.printDirectory(d); err != nil {
		return err
	}
	if !slices.ContainsFunc(lines, d.counts) {
		return failSilently(exitDifferences)
	}
	return nil
}

// printDirectory prints an answer for a person, or with --json for a program.
func (a *app) printDirectory(d directoryAnswer) error {
	if a.json {
		for _, l := range d.lines {
			if err := writeJSON(a.stdout, d.lineJSON(l)); err != nil {
				return err
			}
		}
		return nil
	}
	if _, err := a.stdout.Write(d.page()); err != nil {
		return fail(exitIO, fmt.Errorf("write: %w", err), "")
	}
	return nil
}

func (d directoryAnswer) lineJSON(l networkapi.DirectoryLine) directoryLineJSON {
	text := present.TextOrNil
	return directoryLineJSON{ValidToday: d.counts(l), Asked: d.query.Matches(l), SIREN: text(l.SIREN), SIRET: text(l.SIRET), Company: text(l.BusinessName),
		Status: text(l.LegalStatus), Facility: text(l.FacilityName), FacilitySays: text(l.Status), Addressing: text(l.Addressing), Suffix: text(l.Suffix),
		Routing: text(l.Routing), To: text(l.To), EffectiveEnd: text(l.EffectiveEnd), Line: l.Raw}
}

// page is the answer for a person. All texts of the directory are made printable.
func (d directoryAnswer) page() []byte {
	asked := "SIREN " + d.query.SIREN
	if d.query.SIRET != "" {
		asked = "SIRET " + d.query.SIRET
	}
	valid, others := 0, 0
	for _, l := range d.lines {
		switch {
		case d.counts(l):
			valid++
		case !d.query.Matches(l):
			others++
		}
	}
	p := &present.Page{}
	day := d.today.Format("2 Jan 2006")
	switch {
	case valid > 0:
		fmt.Fprintf(p, "VALID TODAY  %s has %s in the directory on %s.\n", asked, present.FormatCount(valid, "valid line", "valid lines"), day)
	case len(d.lines) == 0:
		fmt.Fprintf(p, "NO VALID LINE TODAY  The directory has no line for %s on %s. Compare the number, and check it with the recipient.\n", asked, day)
	default:
		fmt.Fprintf(p, "NO VALID LINE TODAY  %s has no valid line in the directory on %s. Check it with the recipient.\n", asked, day)
	}
	if others > 0 {
		fmt.Fprintf(p, "Lines of somebody else, or of something else than was asked for: %d. They do not count.\n", others)
	}
	if len(d.lines) == 0 {
		return p.Bytes()
	}
	p.AddHeading("COMPANY AND FACILITY")
	who := present.NewTable(p, "LINE", "SIREN", "COMPANY", "STATUS", "SIRET", "FACILITY", "STATUS")
	for i, l := range d.lines {
		who.AppendRow(present.TableRow(fmt.Sprint(i+1), told(l.SIREN), told(l.BusinessName), told(l.LegalStatus), told(l.SIRET), told(l.FacilityName), told(l.Status)))
	}
	who.Render()
	p.AddHeading("ADDRESSING")
	where := present.NewTable(p, "LINE", "VALID TODAY", "ADDRESSING", "SUFFIX", "ROUTING", "TO", "EFFECTIVE END")
	for i, l := range d.lines {
		where.AppendRow(present.TableRow(fmt.Sprint(i+1), d.validity(l), told(l.Addressing), told(l.Suffix), told(l.Routing), told(l.To), told(l.EffectiveEnd)))
	}
	where.Render()
	return p.Bytes()
}

// validity says in a word or two whether a line counts, and if not, why.
func (d directoryAnswer) validity(l networkapi.DirectoryLine) string {
	switch {
	case !d.query.Matches(l):
		return "no: not asked for"
	case l.HasUnreadableEnd():
		return "no: an end cannot be read"
	case !l.IsValidOn(d.today):
		return "no: ended"
	}
	return "yes"
}

// longestCell bounds a text of the directory in a table, so that one hostile line does not hide the others.
const longestCell = 60

// told makes a text of the directory fit for a cell; "-" where the directory does not tell it.
func told(text string) string {
	return cmp.Or(sanitize.Truncate(sanitize.Text(text), longestCell), "-")
}
