package networkapi

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/strictjson"
)

// Fault is one thing wrong with a document that is to be sent, in words for the person who made it.
type Fault struct {
	Line  int    // in the file, counted from 1
	Field string // where it stands in data or processingPreference, like sentTo.id; empty: the whole file
	Text  string // what is wrong, and what would be right
}

// Describe returns the fault with its place, like "document.json, line 12, sentTo.id: a GLN has 13 digits, this has 12."
func (f Fault) Describe(file string) string {
	place := fmt.Sprintf("%s, line %d", file, f.Line)
	if f.Field != "" {
		place += ", " + f.Field
	}
	return place + ": " + f.Text
}

// MaxFaults is how many faults of one document are listed at most.
const MaxFaults = 50

// CheckDocument returns everything that the network is known to refuse in a document, in the order of its lines, before anything is
// sent. What the specification does not say is not checked. No faults: [ComposeBody] takes the document.
func CheckDocument(document []byte) []Fault {
	doc, err := parseDocument(document)
	if wrong, is := errors.AsType[*parseError](err); is {
		return []Fault{{Line: wrong.line, Text: wrong.text}}
	}
	c, root := &checker{document: doc}, doc.root
	if !root.Is(strictjson.Object) {
		return []Fault{{Line: 1, Text: `the file is not an object in { }; write {"documentType": "Invoice", "data": {…}}.`}}
	}
	for _, r := range doc.repeated[:min(len(doc.repeated), 2*MaxFaults)] {
		c.addFault(r.At, shortenText(r.Key), fmt.Sprintf("stands here a second time (first in line %d); delete one of the two.", doc.lineAt(r.First)))
	}
	for _, m := range root.Members {
		if !isDocumentMember(m.Key) {
			c.addFault(m.At, shortenText(m.Key), `is not known here, and would not be sent; invoice fields belong into "data".`)
		}
	}
	if kindOf(root) == "" {
		c.addFault(root.Find(typeMember).At, typeMember, "is not known; write Invoice or CreditNote.")
	}
	if data := c.requireObject(root, root, "", dataMember); data != nil {
		c.checkData(data)
		c.kind = kindOf(root)
		c.checkValues(data, "", "")
	}
	c.checkRecipient(root)
	c.checkListedFiles(root)
	slices.SortStableFunc(c.faults, func(a, b Fault) int { return a.Line - b.Line })
	return c.faults[:min(len(c.faults), MaxFaults)]
}

// checkRecipient checks whom the document goes to. One that is printed may go to an address alone.
func (c *checker) checkRecipient(root *node) {
	preference := c.optionalObject(root, "", preferenceMember)
	if sentTo := c.optionalObject(preference, "", "sentTo"); sentTo != nil {
		c.checkSchemeAndID(sentTo, "sentTo")
		return
	}
	endpoint := root.Find(dataMember).Find("accountingCustomerParty").Find("endpoint")
	if endpoint != nil || preference.Find("sentTo") != nil || root.Find(printingMember) != nil || preference.Find(printingMember) != nil {
		return // checked with its party, or told above
	}
	place := root
	if preference != nil {
		place = preference
	}
	c.addFault(place.At, join(preferenceMember, "sentTo"), `is missing, so that nobody knows whom the document goes to; write "processingPreference": {"sentTo": {"id": "…", "schemeId": "…"}} beside "data".`)
}

// checkListedFiles checks the list of what the files are to the document.
func (c *checker) checkListedFiles(root *node) {
	named := map[string]bool{}
	for i, f := range c.optionalList(root, "", filesMember) {
		at := fmt.Sprintf("%s[%d]", filesMember, i)
		for _, m := range f.Members {
			if m.Key != "name" && m.Key != "fileType" {
				c.addFault(m.At, join(at, shortenText(m.Key)), "is not known here; a file has a name and a fileType.")
			}
		}
		if n, name := c.requireText(f, at, "name", "write the name of the file"); n != nil {
			if named[strings.ToLower(name)] {
				c.addFault(n.At, join(at, "name"), "names a file that was named before; delete one of the two.")
			}
			named[strings.ToLower(name)] = true
		}
		if n, word := c.requireText(f, at, "fileType", "write "+fileTypeWords); n != nil && !archive.FileType(word).IsKnown() {
			c.addFault(n.At, join(at, "fileType"), "is not known; write "+fileTypeWords+".")
		}
	}
}

// checker collects the faults of a document.
type checker struct {
	document tree
	kind     archive.NetworkKind // of the document
	faults   []Fault
}

// isFull reports whether no further fault is listed.
func (c *checker) isFull() bool { return len(c.faults) >= 2*MaxFaults }

func (c *checker) addFault(at int, field, text string) {
	if c.isFull() {
		return
	}
	if f := (Fault{Line: c.document.lineAt(at), Field: field, Text: text}); !slices.Contains(c.faults, f) {
		c.faults = append(c.faults, f)
	}
}

// join returns the name of a field within the field above.
func join(above, name string) string {
	if above == "" {
		return name
	}
	return above + "." + name
}

// optionalObject returns an object that may be missing.
func (c *checker) optionalObject(of *node, above, name string) *node {
	n := of.Find(name)
	if n != nil && !n.Is(strictjson.Object) {
		c.addFault(n.At, join(above, name), "must be an object in { }.")
		return nil
	}
	return n
}

// requireObject returns an object that must be there. Its lack is told at the place of the node place.
func (c *checker) requireObject(of, place *node, above, name string) *node {
	if of.Find(name) == nil {
		c.addFault(place.At, join(above, name), "is missing.")
		return nil
	}
	return c.optionalObject(of, above, name)
}

// optionalList returns the objects of a list that may be missing.
func (c *checker) optionalList(of *node, above, name string) []*node {
	n := of.Find(name)
	if n == nil {
		return nil
	}
	if !n.Is(strictjson.List) {
		c.addFault(n.At, join(above, name), "must be a list in [ ].")
		return nil
	}
	var objects []*node
	for i, item := range n.Items {
		if item.Is(strictjson.Object) {
			objects = append(objects, item)
		} else {
			c.addFault(item.At, fmt.Sprintf("%s[%d]", join(above, name), i), "must be an object in { }.")
		}
	}
	return objects
}

// optionalText returns a text that may be missing; nil: it is missing, or no text.
func (c *checker) optionalText(of *node, above, name string) (n *node, text string) {
	n = of.Find(name)
	if n == nil {
		return nil, ""
	}
	if !n.Is(strictjson.Text) {
		c.addFault(n.At, join(above, name), "must be a text in quotes.")
		return nil, ""
	}
	return n, n.Text
}

// requireText returns a text that must be there and not be empty; nil: it is not.
func (c *checker) requireText(of *node, above, name, advice string) (n *node, text string) {
	if of.Find(name) == nil {
		c.addFault(of.At, join(above, name), "is missing; "+advice+".")
		return nil, ""
	}
	n, text = c.optionalText(of, above, name)
	if n != nil && strings.TrimSpace(text) == "" {
		c.addFault(n.At, join(above, name), "is empty; "+advice+".")
		return nil, ""
	}
	return n, text
}

// Names of fields that have one form wherever they stand.
var (
	dateFields    = []string{"issueDate", "actualDeliveryDate", "paymentDueDate", "startDate", "endDate"}
	numberFields  = []string{"amount", "percent", "taxableAmount", "taxPercent", "multiplierFactorNumeric", "penaltySurchargePercent"}
	currencyField = []string{"currencyId", "documentCurrencyCode"}
	countryField  = []string{"countryId"}
)

// customFields hold what the two parties agreed on: the network does not read it.
const customFields = "customFields"

// checkValues checks the names and the forms of everything in n, which has that
// path in data. The form of dates, numbers, currencies and countries counts
// wherever they stand.
func (c *checker) checkValues(n *node, above, path string) {
	for _, m := range n.Members {
		field := join(above, shortenText(m.Key))
		if m.Key == customFields || m.Value.IsNull() {
			continue
		}
		step := m.Key
		if path == "" && slices.Contains(parties, step) {
			step = "party"
		}
		below := join(path, step)
		if advice := adviseOnOldName(c.kind, below, m.Key); advice != "" {
			c.addFault(m.At, field, "is a name of version 1; "+advice)
			continue
		}
		c.checkForm(m.Value, field, below)
		text, isText := m.Value.Text, m.Value.Is(strictjson.Text)
		switch {
		case slices.Contains(dateFields, m.Key) && !(isText && isDate(text)):
			c.addFault(m.Value.At, field, "is no date; write it like 2026-10-31, with a time zone behind it only where it is known, like 2026-10-31+01:00.")
		case slices.Contains(numberFields, m.Key) && !m.Value.Is(strictjson.Number):
			c.addFault(m.Value.At, field, "must be a number without quotes, like 1234.56.")
		case slices.Contains(currencyField, m.Key) && !(isText && currencyPattern.MatchString(text)):
			c.addFault(m.Value.At, field, "is not an ISO 4217 code; write three capital letters, like EUR.")
		case slices.Contains(countryField, m.Key) && !(isText && isCountry(text)):
			c.addFault(m.Value.At, field, "is not an ISO 3166 code; write two capital letters, like DE.")
		}
		c.checkValues(m.Value, field, below)
	}
	for i, item := range n.Items {
		at := fmt.Sprintf("%s[%d]", above, i)
		c.checkForm(item, at, path+"[]")
		c.checkValues(item, at, path+"[]")
	}
}

var (
	currencyPattern = regexp.MustCompile(`^[A-Z]{3}$`)
	datePattern     = regexp.MustCompile(`^([0-9]{4}-[0-9]{2}-[0-9]{2})(Z|[+-](0[0-9]|1[0-4]):[0-5][0-9])?$`)
)

// isDate reports whether text is a day, perhaps with a time zone.
func isDate(text string) bool {
	m := datePattern.FindStringSubmatch(text)
	if m == nil {
		return false
	}
	_, err := time.Parse(time.DateOnly, m[1])
	return err == nil
}
