package recovery

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// compareMetadata compares the metadata in the index with what was frozen for the entry, and reports each field that differs. All
// registrations of an entry were sent with the same metadata, so each of its bumIds is compared with it.
func (p *comparison) compareMetadata(e ledger.Entry, rec archive.IndexRecord, r *VaultReport) error {
	// Equal digests mean equal bytes. This also works where the metadata was erased here.
	if archive.Sum(rec.Document.Metadata()) == e.Metadata {
		r.Compared++
		return nil
	}
	d, ok, err := p.Committer.Document(e.Key)
	if err != nil {
		return err
	}
	if !ok || len(d.Metadata) == 0 {
		r.NotCompared++
		return nil
	}
	ours, err := archive.ParseMetadata(d.Metadata)
	if err != nil {
		return fmt.Errorf("entry %s: %w", e.Key, err)
	}
	r.Compared++
	for _, f := range differingFields(ours, rec.Document) {
		// An archive may add fields that it derives, and then every document
		// would differ for ever. So this is an assumption: such a field is
		// counted, and is no difference.
		if f.ours == "" {
			if r.Added == nil {
				r.Added = map[string]int{}
			}
			r.Added[f.name]++
			continue
		}
		r.Differing.add(Finding{Key: e.Key, Remote: rec.Remote, Number: ours.Number, Field: f.name, Ours: shorten(f.ours, mostValue), Theirs: shorten(f.theirs, mostValue),
			Text: fmt.Sprintf("%s is %s here, and %s in the archive's index", f.name, f.quoteValue(f.ours), f.quoteValue(f.theirs))})
	}
	return nil
}

// field is one field of the metadata, as it was frozen and as the index gives it.
type field struct {
	name         string
	ours, theirs string
	same         bool
	isSet        bool // of texts that are quoted, each
}

// differingFields names the fields that differ: amounts by their value, dates
// as instants, identifiers and additional parameters as sets, all others letter
// by letter. It is not specified which fields the index repeats. So this is an
// assumption: a field that is left out, null or empty is no difference.
func differingFields(ours, theirs archive.Document) (all []field) {
	text := func(name, a, b string) field { return field{name: name, ours: a, theirs: b, same: a == b} }
	set := func(name string, a, b string) field { return field{name, a, b, a == b, true} }
	for _, f := range []field{
		text("documentType", ours.Type, theirs.Type),
		text("documentId", ours.Number, theirs.Number),
		{name: "documentDate", ours: ours.Date, theirs: theirs.Date, same: sameInstant(ours.Date, theirs.Date)},
		text("senderName", ours.SenderName, theirs.SenderName),
		set("senderIds", quoteIDs(ours.SenderIDs), quoteIDs(theirs.SenderIDs)),
		text("recipientName", ours.RecipientName, theirs.RecipientName),
		set("recipientIds", quoteIDs(ours.RecipientIDs), quoteIDs(theirs.RecipientIDs)),
		text("currencyCode", ours.Currency, theirs.Currency),
		text("buyerReferenceId", ours.BuyerReferenceID, theirs.BuyerReferenceID),
		text("buyerReferenceType", ours.BuyerReferenceType, theirs.BuyerReferenceType),
		{name: "amount", ours: string(ours.Amount), theirs: string(theirs.Amount), same: sameAmount(ours.Amount, theirs.Amount)},
		set("additionalParameters", quoteParameters(ours.Parameters), quoteParameters(theirs.Parameters)),
		text("tradingPartner", ours.TradingPartner, theirs.TradingPartner),
		text("flowDirection", ours.FlowDirection, theirs.FlowDirection),
	} {
		if !f.same && f.theirs != "" {
			all = append(all, f)
		}
	}
	return all
}

// sameAmount compares by value: 119.00 is 119, and 1.19e2 too. Texts that are no numbers must be the same letter by letter.
func sameAmount(a, b archive.Decimal) bool {
	x, y := valueOf(a), valueOf(b)
	return a == b || x != nil && y != nil && x.Cmp(y) == 0
}

// valueOf reads an amount as the archive may write it; nil where it is none. The bounds keep a number of a million digits
// from being computed.
func valueOf(d archive.Decimal) *big.Rat {
	const mostDigits, mostExponent = 2 * archive.MaxAmountDigit, 3 // characters
	digits, exponent, _ := strings.Cut(strings.ToLower(string(d)), "e")
	if len(digits) > mostDigits || len(exponent) > mostExponent || strings.Trim(digits+exponent, "+-.0123456789") != "" {
		return nil
	}
	return d.Rat()
}

// sameInstant compares as points in time; texts that are no dates must be the same letter by letter.
func sameInstant(a, b string) bool {
	x, y := apicall.ParseTime(a), apicall.ParseTime(b)
	return a == b || !x.IsZero() && x.Equal(y)
}

// quoteIDs writes the set of identifiers, without empty ones.
func quoteIDs(ids []string) string {
	var all []string
	for _, id := range ids {
		if id != "" {
			all = append(all, strconv.Quote(id))
		}
	}
	return asSet(all)
}

// quoteParameters writes the set of additional parameters.
func quoteParameters(ps []archive.Parameter) string {
	var all []string
	for _, p := range ps {
		all = append(all, strconv.Quote(p.Key)+"="+strconv.Quote(p.Value))
	}
	return asSet(all)
}

// asSet writes texts so that it gives the same for the same set: in order, each once.
func asSet(all []string) string {
	slices.Sort(all)
	return strings.Join(slices.Compact(all), ", ")
}

// quoteValue gives a value for a sentence of one line, quoted and shortened.
func (f field) quoteValue(value string) string {
	switch value = shorten(value, 80); {
	case value == "":
		return "not given"
	case f.isSet:
		return value
	}
	return strconv.Quote(value)
}

// mostValue is how many characters of a value are kept: the archive's may be of any length.
const mostValue = 1000

func shorten(value string, most int) string {
	if r := []rune(value); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return value
}
