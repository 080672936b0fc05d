package packager

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"vaultd/internal/archive"
	"vaultd/internal/strictjson"
)

// fromConfig turns a configuration's values into those of a sidecar, without a place, and checks each as if it stood in one.
func fromConfig(config map[string]any, name string) (*strictjson.Value, []archive.Fault) {
	v := &strictjson.Value{Kind: strictjson.Object, At: -1}
	f := newSidecarReader(name)
	for _, key := range slices.Sorted(maps.Keys(config)) {
		x, ok := toValue(config[key])
		if key == "amount" && x.Kind == strictjson.Text {
			x.Kind = strictjson.Number
		}
		switch {
		case !ok:
			f.addFault(-1, key, "", "has a value of a kind that is not known here", "Write text in quotes")
		case key == "clientUUID" || key == "files" || key == "documentId":
			f.addFault(-1, key, "", "is each document's own", "Leave it out")
		default:
			v.Members = append(v.Members, strictjson.Member{Key: key, At: -1, Value: x})
		}
	}
	f.readFields(v)
	for _, x := range f.doc.Faults() {
		if _, given := f.at[x.Field]; given && !f.faulty[x.Field] {
			f.addFault(-1, x.Field, "", x.Text, "")
		}
	}
	var faults []archive.Fault
	for _, x := range f.faults {
		faults = append(faults, archive.Fault{Field: name + "." + x.Field, Text: strings.TrimSuffix(x.Text+"; "+lowerFirst(x.Advice), "; ")})
	}
	return v, faults
}

func lowerFirst(s string) string {
	if s == "" {
		return ""
	}
	return strings.ToLower(s[:1]) + s[1:]
}

// toValue maps what a YAML decoder returns. A float is refused, because a binary fraction has no exact decimal text.
func toValue(x any) (*strictjson.Value, bool) {
	v := &strictjson.Value{At: -1}
	switch x := x.(type) {
	case string:
		v.Kind, v.Text = strictjson.Text, x
	case json.Number:
		v.Kind, v.Text = strictjson.Number, x.String()
	case int, int64, uint64:
		v.Kind, v.Text = strictjson.Number, fmt.Sprint(x)
	case bool, nil:
		v.Kind, v.Text = strictjson.Word, fmt.Sprint(x)
	case []string:
		v.Kind = strictjson.List
		for _, s := range x {
			v.Items = append(v.Items, &strictjson.Value{Kind: strictjson.Text, At: -1, Text: s})
		}
	case []any:
		v.Kind = strictjson.List
		for _, e := range x {
			item, ok := toValue(e)
			if !ok {
				return v, false
			}
			v.Items = append(v.Items, item)
		}
	case map[string]any:
		v.Kind = strictjson.Object
		for _, key := range slices.Sorted(maps.Keys(x)) {
			item, ok := toValue(x[key])
			if !ok {
				return v, false
			}
			v.Members = append(v.Members, strictjson.Member{Key: key, At: -1, Value: item})
		}
	default:
		return v, false
	}
	return v, true
}

// allowedValues returns the values of which a required field must have one.
func allowedValues(x any) ([]string, bool) {
	v, ok := toValue(x)
	if !ok {
		return nil, false
	}
	items := []*strictjson.Value{v}
	if v.Kind == strictjson.List {
		items = v.Items
	}
	var all []string
	for _, item := range items {
		if item.Kind != strictjson.Text && item.Kind != strictjson.Number || item.Text == "" {
			return nil, false
		}
		all = append(all, item.Text)
	}
	return all, len(all) > 0
}

func (r Rules) checkRequire() (faults []archive.Fault) {
	for _, key := range slices.Sorted(maps.Keys(r.Require)) {
		said := ""
		switch _, ok := allowedValues(r.Require[key]); {
		case key == "clientUUID" || key == "files" || key == "additionalParameters":
			said = "cannot be required"
		case !slices.Contains(sidecarFields, key):
			said = "is not a field that is known here"
		case !ok:
			said = "must be text or a list of texts"
		}
		if said != "" {
			faults = append(faults, archive.Fault{Field: "require." + key, Text: said})
		}
	}
	return faults
}

// fieldValues returns the document's values of a field that can be required.
func (f *sidecarReader) fieldValues(key string) []string {
	d := f.doc
	switch key {
	case "senderIds":
		return d.SenderIDs
	case "recipientIds":
		return d.RecipientIDs
	}
	s := map[string]string{
		"documentType": d.Type, "documentId": d.Number, "documentDate": d.Date, "senderName": d.SenderName,
		"recipientName": d.RecipientName, "currencyCode": d.Currency, "buyerReferenceId": d.BuyerReferenceID,
		"buyerReferenceType": d.BuyerReferenceType, "amount": string(d.Amount),
		"tradingPartner": d.TradingPartner, "flowDirection": d.FlowDirection,
	}[key]
	if s == "" {
		return nil
	}
	return []string{s}
}

// checkRequired refuses a document that belongs in another drop folder.
func (f *sidecarReader) checkRequired(rules map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(rules)) {
		want, _ := allowedValues(rules[key])
		have := f.fieldValues(key)
		match := slices.ContainsFunc(have, func(s string) bool { return slices.Contains(want, s) })
		if match || f.faulty[key] {
			continue
		}
		wanted := showName(strings.Join(want, " or "))
		if len(have) == 0 {
			f.addFault(-1, key, key+" missing", "is missing; this folder is for "+wanted, fmt.Sprintf("Write it, or move the folder to the right company's. This one takes %s", wanted))
			continue
		}
		who := `"` + key + `"`
		switch {
		case strings.HasPrefix(key, "recipient"):
			who = "Recipient"
		case strings.HasPrefix(key, "sender"):
			who = "Sender"
		}
		// The fault has no line: the sidecar may be right and only the drop folder wrong.
		f.faults = append(f.faults, Fault{Brief: "belongs in another folder",
			Text:   fmt.Sprintf("%s is %s; this folder is for %s", who, showName(strings.Join(have, ", ")), wanted),
			Advice: "Move it to the right company's folder."})
	}
}
