package packager

import (
	"context"
	"os"
	"strings"

	"vaultd/internal/archive"
	"vaultd/internal/sanitize"
)

// ReadSidecar returns what the sidecar of a folder says. It does not look at the folder's other files; where the sidecar
// cannot be read as one, nothing is known. Its errors are Build's.
func ReadSidecar(ctx context.Context, root *os.Root, rules Rules) (archive.AsRead, error) {
	rules, err := rules.validated()
	if err != nil {
		return archive.AsRead{}, err
	}
	d, err := openFolder(ctx, root, rules)
	if err != nil {
		return archive.AsRead{}, err
	}
	return d.form.asRead, nil
}

// asRead keeps what an object of a sidecar says of the invoice, whatever is wrong with it otherwise. Values of the drop's
// defaults are not in it. Nothing in it was checked.
func asRead(v value) (read archive.AsRead) {
	for field, to := range map[string]*string{
		"documentType": &read.Type, "documentId": &read.Number, "documentDate": &read.Date, "amount": &read.Amount, "currencyCode": &read.Currency,
		"senderName": &read.SenderName, "senderIds": &read.SenderIDs, "recipientName": &read.RecipientName, "recipientIds": &read.RecipientIDs,
	} {
		*to = onlyText(v.members, field)
	}
	return read
}

// onlyText gives the text of a field that stands once, or each time with the same text. Upper and lower case of its name
// are the same.
func onlyText(members []member, field string) string {
	sole, found := "", false
	for _, m := range members {
		if !strings.EqualFold(m.key, field) {
			continue
		}
		said := plainText(m.value)
		if found && said != sole {
			return "" // nobody can tell which of them is meant
		}
		sole, found = said, true
	}
	return sole
}

// wideBlanks become plain ones: they look the same, and stand in amounts like 1 234,56.
var wideBlanks = strings.NewReplacer("\u00a0", " ", "\u202f", " ")

// plainText gives a text, a number as it is written, or a list of these; empty for anything else, for what is too long, and
// for what cannot be shown as it is.
func plainText(v value) string {
	s := ""
	switch v.kind {
	case text, number:
		s = strings.TrimSpace(v.text)
	case array:
		var items []string
		for _, item := range v.items {
			if item.kind != text && item.kind != number {
				return ""
			}
			items = append(items, strings.TrimSpace(item.text))
		}
		s = strings.Join(items, ", ")
	}
	s = wideBlanks.Replace(s)
	if len(s) > archive.MaxAsRead || strings.ContainsFunc(s, func(r rune) bool { return !sanitize.IsPrintable(r) }) {
		return ""
	}
	return s
}
