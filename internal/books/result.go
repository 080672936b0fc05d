package books

import (
	"fmt"
	"slices"
	"strings"

	"vaultd/internal/present"
)

// Result is the answer in plain words.
type Result struct {
	Code  string `json:"code"` // complete, not-complete or nothing
	Title string `json:"title"`
	Text  string `json:"text"`
}

// Result says whether every booked invoice is archived. Nothing is called complete where something is not known.
func (a *Answer) Result() Result {
	text := strings.TrimSpace(a.describeUnknown() + " " + a.describeMissing())
	switch {
	case !a.IsComplete() || a.Missing() > 0:
		return Result{"not-complete", "NOT COMPLETE", text}
	case a.Booked == 0:
		return Result{"nothing", "NOTHING BOOKED", "The extracts have no booked invoice of this time" + a.ofCompany() + "." + a.describeUnbooked()}
	}
	return Result{"complete", "EVERY BOOKED INVOICE IS ARCHIVED", text}
}

// HasDifferences reports whether something needs a person: it is not archived as booked, or not known.
func (a *Answer) HasDifferences() bool { return !a.IsComplete() || a.Missing() > 0 }

// describeUnknown says what keeps the answer from being complete, whatever was found.
func (a *Answer) describeUnknown() string {
	var parts []string
	if a.Question.Safe != "" {
		parts = append(parts, "SAFE MODE: "+a.Question.Safe+".")
	}
	const named = 5
	for i, h := range a.Coverage.Holes {
		if i == named {
			parts = append(parts, fmt.Sprintf("There are %d more such times.", len(a.Coverage.Holes)-named))
			break
		}
		parts = append(parts, h.String())
	}
	if n := len(a.Problems); n > 0 {
		parts = append(parts, fmt.Sprintf("%s could not be read.", present.FormatCount(n, "extract", "extracts")))
	}
	if n := a.Coverage.NoKey; n > 0 {
		parts = append(parts, fmt.Sprintf("%s no key and could not be counted.", present.FormatCount(n, "record has", "records have")))
	}
	for _, i := range a.Index {
		if !i.Complete {
			parts = append(parts, fmt.Sprintf("The archive's index of vault %s was not read to its end.", i.Vault))
		}
	}
	return strings.Join(parts, " ")
}

// describeMissing says how many booked invoices are archived, and what the others are.
func (a *Answer) describeMissing() string {
	if a.Booked == 0 {
		return "The extracts have no booked invoice of this time" + a.ofCompany() + "." + a.describeUnbooked()
	}
	text := fmt.Sprintf("Of %s%s, %s archived", present.FormatCount(int(a.Booked), "booked invoice", "booked invoices"), a.ofCompany(), present.FormatCount(int(a.Counts[Archived]), "is", "are"))
	var parts []string
	for _, v := range Verdicts()[1:] {
		if n := a.Counts[v]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, v.Words()))
		}
	}
	if len(parts) > 0 {
		text += fmt.Sprintf(" and %d not: %s", a.Missing(), strings.Join(parts, ", "))
	}
	return text + "." + a.describeUnbooked()
}

func (a *Answer) ofCompany() string {
	if a.Question.Company == "" {
		return ""
	}
	return " of " + a.Question.Company
}

func (a *Answer) describeUnbooked() string {
	if a.Unbooked == 0 {
		return ""
	}
	return fmt.Sprintf(" %s archived and not booked.", present.FormatCount(int(a.Unbooked), "document of this time is", "documents of this time are"))
}

// Words says the verdict in words that follow a number.
func (v Verdict) Words() string {
	return [...]string{"archived", "archived with another value", "ambiguous (several fit)", "in question", "on the way", "quarantined", "rejected", "delivered, not archived",
		"with only a similar number", "never dropped", "unreadable in the books"}[v]
}

// IndexWords says how much of the archive's own index was read.
func (a *Answer) IndexWords() []string {
	if len(a.Index) == 0 {
		return []string{"The archive's own index was not read: archived means that the archive said so to vaultd. vaultd books --index reads it."}
	}
	var all []string
	for _, i := range slices.SortedFunc(slices.Values(a.Index), func(x, y IndexRead) int { return strings.Compare(string(x.Vault), string(y.Vault)) }) {
		text := fmt.Sprintf("The archive's own index of vault %s: %d of %d read.", i.Vault, i.Read, i.Found)
		if i.Found < 0 {
			text = fmt.Sprintf("The archive's own index of vault %s: %d read; it does not say how many there are.", i.Vault, i.Read)
		}
		if !i.Complete {
			text += " NOT COMPLETE: " + i.Why
		}
		all = append(all, text)
	}
	return all
}
