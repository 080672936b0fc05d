package packager

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// listFields are the fields of a sidecar that hold lists.
var listFields = []string{"senderIds", "recipientIds", "additionalParameters", "files"}

// MakeTemplate returns an empty sidecar to be copied and filled in, with the values of the rules' defaults, and a page of
// help that explains it and shows a whole one. The sidecar is valid as soon as its number and date (and its files, where
// Complete is list) are filled in. Both are plain text with LF, and change only with the rules.
func MakeTemplate(r Rules) (sidecar []byte, help string) {
	r = r.withDefaults()
	fields := map[string]any{"documentType": "Invoice"}
	for _, key := range sidecarFields {
		if _, set := fields[key]; set || key == "clientUUID" || key == "files" && r.Complete != "list" {
			continue
		}
		fields[key] = ""
		if slices.Contains(listFields, key) {
			fields[key] = []string{}
		}
	}
	maps.Copy(fields, r.Defaults)
	example := maps.Clone(fields)
	maps.DeleteFunc(example, func(key string, v any) bool { return r.Defaults[key] == nil && key != "documentType" })
	for key, v := range map[string]any{"documentId": "RE-2026-0088", "documentDate": "2026-10-31", "senderName": "Huber & Söhne KG",
		"senderIds": []string{"DE123456789"}, "amount": json.Number("1234.56"), "currencyCode": "EUR"} {
		if _, set := r.Defaults[key]; !set {
			example[key] = v
		}
	}
	if r.Complete == "list" {
		example["files"] = []string{"rechnung.pdf"}
	}
	return encodeFields(fields), r.helpText(encodeFields(example))
}

// encodeFields writes fields in the order in which people know them.
func encodeFields(fields map[string]any) []byte {
	var b bytes.Buffer
	b.WriteString("{")
	sep := "\n"
	for _, key := range sidecarFields {
		v, ok := fields[key]
		if !ok {
			continue
		}
		var text bytes.Buffer
		enc := json.NewEncoder(&text)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(v); err != nil {
			// Cannot happen: the rules were checked.
			continue
		}
		fmt.Fprintf(&b, "%s  %q: %s", sep, key, bytes.TrimSpace(text.Bytes()))
		sep = ",\n"
	}
	b.WriteString("\n}\n")
	return b.Bytes()
}

func (r Rules) helpText(example []byte) string {
	var b strings.Builder
	fmt.Fprintf(&b, `HOW TO FILL IN %[1]s

1. Make one folder for one invoice, and put all its files into it.
2. Copy %[1]s from here into that folder and open it with Notepad.
3. Write between the quotes. Fields that stay "" or [ ] are not sent.
4. Move the folder into this share, beside _STATUS.txt.

These must be there:
  documentType   Invoice, CreditNote, InvoiceSelfBilled or CreditNoteSelfBilled
  documentId     the invoice number
  documentDate   the date of issue, as 2026-10-31
`, r.Sidecar)
	switch r.Complete {
	case "list":
		b.WriteString("  files          the names of all files, as [\"rechnung.pdf\"]\n")
	case "marker":
		b.WriteString("When all files are there, put an empty file named .done beside them.\n")
	}
	b.WriteString("\namount is a number with a point and nothing else, as \"1234.56\".\nLists stand in [ ], also around a single one: [\"DE123456789\"].\n")
	if len(r.Defaults) > 0 {
		fmt.Fprintf(&b, "Filled in for this share, and used where you leave it out: %s.\n", strings.Join(slices.Sorted(maps.Keys(r.Defaults)), ", "))
	}
	if len(r.Require) > 0 {
		fmt.Fprintf(&b, "This share takes one company's invoices alone; it looks at: %s.\n", strings.Join(slices.Sorted(maps.Keys(r.Require)), ", "))
	}
	fmt.Fprintf(&b, "\nA whole one:\n\n%s", example)
	return b.String()
}
