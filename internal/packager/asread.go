package packager

import (
	"context"
	"os"
	"strings"

	"vaultd/internal/archive"
	"vaultd/internal/sanitize"
	"vaultd/internal/strictjson"
)

// ReadSidecar returns what the sidecar of a folder says. It does not look at the folder's other files. A sidecar that cannot
// be read gives an empty result. Its errors are those of BuildPackage.
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
func asRead(v *strictjson.Value) (read archive.AsRead) {
	for field, to := range map[string]*string{
		"documentType": &read.Type, "documentId": &read.Number, "documentDate": &read.Date, "amount": &read.Amount, "currencyCode": &read.Currency,
		"senderName": &read.SenderName, "senderIds": &read.SenderIDs, "recipientName": &read.RecipientName, "recipientIds": &read.RecipientIDs,
	} {
		*to = onlyText(v.Members, field)
	}
	return read
}

// onlyText returns the text of a field that stands once, or each time with the same text. Case in its name does not count.
func onlyText(members []strictjson.Member, field string) string {
	sole, found := "", false
	for _, m := range members {
		if !strings.EqualFold(m.Key, field) {
			continue
		}
		said := plainText(m.Value)
		if found && said != sole {
			// It is unknown which of them is meant.
			return ""
		}
		sole, found = said, true
	}
	return sole
}

// wideBlanks become plain ones: they look the same, and stand in amounts like 1 234,56.
var wideBlanks = strings.NewReplacer("\u00a0", " ", "\u202f", " ")

// plainText returns a text, a number as it is written, or a list of these. It is empty for any other value, for one that is
// too long, and for one that cannot be shown as it is.
func plainText(v *strictjson.Value) string {
	s := ""
	switch v.Kind {
	case strictjson.Text, strictjson.Number:
		s = strings.TrimSpace(v.Text)
	case strictjson.List:
		var items []string
		for _, item := range v.Items {
			if item.Kind != strictjson.Text && item.Kind != strictjson.Number {
				return ""
			}
			items = append(items, strings.TrimSpace(item.Text))
		}
		s = strings.Join(items, ", ")
	}
	s = wideBlanks.Replace(s)
	if len(s) > archive.MaxAsRead || strings.ContainsFunc(s, func(r rune) bool { return !sanitize.IsPrintable(r) }) {
		return ""
	}
	return s
}
