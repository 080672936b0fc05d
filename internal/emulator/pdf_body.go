package emulator

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"
)

// slotAddressees are the two addresses of a registration.
type slotAddressees struct {
	Receiving    string `json:"receiving"`
	Notification string `json:"notification"`
}

// fieldProblem is what is wrong with one field of a body, in words that repeat nothing of its value.
type fieldProblem struct{ field, kind, message string }

const (
	receivingField    = "receivingEmailAddress"
	notificationField = "notificationEmailAddress"
)

// parseSlotBody reads the body of pdf-register: exactly two fields, both addresses. unreadable says that it is no such object at
// all; problems are those of its fields.
func parseSlotBody(body []byte, known []string) (who slotAddressees, problems []fieldProblem, unreadable string) {
	var have map[string]json.RawMessage
	switch {
	case !utf8.Valid(body):
		return who, nil, "the body is not valid UTF-8"
	case !bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")) || json.Unmarshal(body, &have) != nil:
		return who, nil, "the body is not a JSON object"
	case hasTwins(body):
		return who, nil, "a name occurs twice in the body"
	}
	for _, f := range []struct {
		name string
		to   *string
	}{{receivingField, &who.Receiving}, {notificationField, &who.Notification}} {
		raw, told := have[f.name]
		if !told {
			problems = append(problems, fieldProblem{f.name, "value_error.missing", "field required"})
			continue
		}
		text, ok := asString(raw)
		switch {
		case !ok:
			problems = append(problems, fieldProblem{f.name, "type_error.str", "str type expected"})
		case !isAddress(text):
			problems = append(problems, fieldProblem{f.name, "value_error.email", "value is not a valid email address"})
		case f.name == receivingField && !knowsReceiving(known, text):
			problems = append(problems, fieldProblem{f.name, "value_error", "no PDF flow receives at this address"})
		}
		*f.to = text
	}
	for _, name := range slices.Sorted(maps.Keys(have)) {
		if name != receivingField && name != notificationField {
			problems = append(problems, fieldProblem{name, "value_error.extra", "extra fields not permitted"})
		}
	}
	return who, problems, ""
}

func describeProblems(problems []fieldProblem) string {
	var parts []string
	for _, p := range problems {
		parts = append(parts, fmt.Sprintf("%s: %s", p.field, p.message))
	}
	return strings.Join(parts, "; ")
}

// unprocessable is the answer to a body whose fields are wrong. If the error
// form has a list, it has one element per problem.
func (c *call) unprocessable(problems []fieldProblem) reply {
	form := c.of.errorForm(c.reading)
	if form != "specified" && form != "detail-list" {
		return c.refusal(http.StatusUnprocessableEntity, "value_error", describeProblems(problems))
	}
	list := []map[string]any{}
	for _, p := range problems {
		list = append(list, map[string]any{"loc": []string{"body", p.field}, "msg": p.message, "type": p.kind})
	}
	return reply{status: http.StatusUnprocessableEntity, header: jsonHeader(), body: encodeJSON(map[string]any{"detail": list})}
}
