package emulator

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// batchElement is one document of a registration: its bytes as they were sent, and what the server needs of it.
type batchElement struct {
	raw                    json.RawMessage
	clientUUID, documentID string
	digest                 string // of raw
}

// check returns what is wrong with a field's value, in words that repeat nothing of it, or "".
type check func(raw json.RawMessage) string

var required = []string{"clientUUID", "documentId", "documentDate", "documentType"}

// fields are the fields that a document may have. A document with another one is refused.
var fields = map[string]check{
	"clientUUID":           checkPattern(`^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$`, "a canonical UUID"),
	"documentId":           checkText(1, 100),
	"documentDate":         checkDate,
	"documentType":         checkOneOf("Invoice", "CreditNote", "InvoiceSelfBilled", "CreditNoteSelfBilled"),
	"senderName":           checkText(0, 150),
	"recipientName":        checkText(0, 150),
	"senderIds":            checkIDs,
	"recipientIds":         checkIDs,
	"currencyCode":         checkPattern(`^[A-Z]{3}$`, "a currency code of three capital letters"),
	"buyerReferenceId":     checkText(0, 100),
	"buyerReferenceType":   checkText(0, 100),
	"amount":               checkNumber,
	"additionalParameters": checkParameters,
	"tradingPartner":       checkText(0, 150),
	"flowDirection":        checkOneOf("sending", "receiving"),
}

// parseBatch reads the array of documents. One bad element refuses all: the problem names its position and field.
func parseBatch(body []byte, limit int) (batch []batchElement, problem string) {
	if !utf8.Valid(body) {
		return nil, "the body is not valid UTF-8"
	}
	var raws []json.RawMessage
	if !bytes.HasPrefix(bytes.TrimSpace(body), []byte("[")) || json.Unmarshal(body, &raws) != nil {
		return nil, "the body is not a JSON array"
	}
	if len(raws) == 0 || len(raws) > limit {
		return nil, fmt.Sprintf("the array must have 1 to %d documents", limit)
	}
	for i, raw := range raws {
		e, problem := parseElement(raw)
		if problem != "" {
			return nil, fmt.Sprintf("document %d: %s", i, problem)
		}
		batch = append(batch, e)
	}
	return batch, ""
}

func parseElement(raw json.RawMessage) (e batchElement, problem string) {
	var have map[string]json.RawMessage
	if raw[0] != '{' || json.Unmarshal(raw, &have) != nil {
		return e, "is not an object"
	}
	if hasTwins(raw) {
		return e, "a name occurs twice in one object"
	}
	for _, name := range required {
		if _, ok := have[name]; !ok {
			return e, name + ": is required"
		}
	}
	for name, value := range have {
		check, known := fields[name]
		if !known {
			return e, "has an unknown field"
		}
		if p := check(value); p != "" {
			return e, name + ": " + p
		}
	}
	e.raw, e.digest = raw, digest(raw)
	e.clientUUID, _ = asString(have["clientUUID"])
	e.documentID, _ = asString(have["documentId"])
	return e, ""
}

func asString(raw json.RawMessage) (s string, ok bool) {
	return s, raw[0] == '"' && json.Unmarshal(raw, &s) == nil
}

func checkText(least, most int) check {
	return func(raw json.RawMessage) string {
		s, ok := asString(raw)
		switch n := utf8.RuneCountInString(s); {
		case !ok:
			return "must be a string"
		case n < least || n > most:
			return fmt.Sprintf("must have %d to %d characters", least, most)
		}
		return ""
	}
}

func checkPattern(pattern, what string) check {
	re := regexp.MustCompile(pattern)
	return func(raw json.RawMessage) string {
		if s, ok := asString(raw); !ok || !re.MatchString(s) {
			return "must be " + what
		}
		return ""
	}
}

func checkOneOf(words ...string) check {
	return func(raw json.RawMessage) string {
		if s, ok := asString(raw); !ok || !slices.Contains(words, s) {
			return "must be one of " + strings.Join(words, ", ")
		}
		return ""
	}
}

var dateForm = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z$`)

func checkDate(raw json.RawMessage) string {
	s, ok := asString(raw)
	if _, err := time.Parse(time.RFC3339Nano, s); !ok || err != nil || !dateForm.MatchString(s) {
		return "must be an ISO 8601 date-time in UTC"
	}
	return ""
}

func checkNumber(raw json.RawMessage) string {
	if raw[0] != '-' && (raw[0] < '0' || raw[0] > '9') {
		return "must be a JSON number"
	}
	return ""
}

// checkIDs limits the characters of all together, with a separator between each two.
func checkIDs(raw json.RawMessage) string {
	var items []json.RawMessage
	if raw[0] != '[' || json.Unmarshal(raw, &items) != nil {
		return "must be an array of strings"
	}
	sum := max(len(items)-1, 0)
	for _, item := range items {
		s, ok := asString(item)
		if !ok {
			return "must be an array of strings"
		}
		sum += utf8.RuneCountInString(s)
	}
	if sum > 300 {
		return "must have at most 300 characters in all"
	}
	return ""
}

func checkParameters(raw json.RawMessage) string {
	var items []map[string]json.RawMessage
	if raw[0] != '[' || json.Unmarshal(raw, &items) != nil {
		return "must be an array of objects"
	}
	for _, item := range items {
		key, value := item["key"], item["value"]
		if len(item) != 2 || len(key) == 0 || len(value) == 0 || key[0] != '"' || value[0] != '"' {
			return "must have a key and a value, both strings, in each object"
		}
	}
	return ""
}

// hasTwins reports a name that occurs twice in one object, at any depth. raw is valid JSON.
func hasTwins(raw json.RawMessage) bool {
	type level struct {
		names  map[string]bool // nil in an array
		isName bool
	}
	var stack []level
	d := json.NewDecoder(bytes.NewReader(raw))
	for {
		tok, err := d.Token()
		if err != nil {
			return false // the end
		}
		top := len(stack) - 1
		if name, ok := tok.(string); ok && top >= 0 && stack[top].isName {
			if stack[top].names[name] {
				return true
			}
			stack[top].names[name], stack[top].isName = true, false
			continue
		}
		switch tok {
		case json.Delim('{'):
			stack = append(stack, level{map[string]bool{}, true})
			continue
		case json.Delim('['):
			stack = append(stack, level{})
			continue
		case json.Delim('}'), json.Delim(']'):
			stack = stack[:top]
			top--
		}
		if top >= 0 {
			stack[top].isName = stack[top].names != nil // a value ended; in an object a name follows
		}
	}
}
