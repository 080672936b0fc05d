package apicall

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"vaultd/internal/sanitize"
)

// Services write their answers in several forms. The functions of this file accept each form that is known, for all clients:
// numbers and booleans for texts, one value for a list, a list alone or within an object, times without a zone. They never
// guess where an answer says two things at once.
var (
	// ErrUnknownForm says that an answer, or a part of it, has none of the forms that are known.
	ErrUnknownForm = errors.New("the answer is not of a form that is known")
	// ErrTwice says that an answer gives a field twice with two values: nobody can say which one is meant.
	ErrTwice = errors.New("a field stands twice with two values")
)

// Fields are the members of a JSON object that were asked for, as they came. What the object does not have is missing
// or nil.
type Fields map[string]json.RawMessage

// ReadFields reads the named members of a JSON object. A name matches exactly, letter for letter: a service may add a
// field STATUS beside its status any day, and encoding/json would let the one stand for the other. Fields with other
// names are skipped, whatever they hold. A named field that stands twice must say the same both times; else the error
// wraps ErrTwice. Anything but one object is ErrUnknownForm.
func ReadFields(object []byte, names ...string) (Fields, error) {
	dec := json.NewDecoder(bytes.NewReader(trimBOM(object)))
	if tok, err := dec.Token(); err != nil || tok != json.Delim('{') {
		return nil, ErrUnknownForm
	}
	fields := make(Fields, len(names))
	for dec.More() {
		var value json.RawMessage
		tok, err := dec.Token()
		if err == nil {
			err = dec.Decode(&value)
		}
		if err != nil {
			return nil, ErrUnknownForm
		}
		name, _ := tok.(string) // between the braces of an object a token is a name
		if !slices.Contains(names, name) {
			continue
		}
		if had, twice := fields[name]; twice && !bytes.Equal(had, value) {
			return nil, fmt.Errorf("%w: %s", ErrTwice, name)
		}
		fields[name] = value
	}
	if _, err := dec.Token(); err != nil { // the closing brace
		return nil, ErrUnknownForm
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, ErrUnknownForm // something follows the object
	}
	return fields, nil
}

// Either gives the field that services spell in one of several ways. Two spellings in one object must say the same;
// else the error wraps ErrTwice.
func (f Fields) Either(spellings ...string) (json.RawMessage, error) {
	var found json.RawMessage
	for _, name := range spellings {
		value, ok := f[name]
		if !ok {
			continue
		}
		if found != nil && !bytes.Equal(found, value) {
			return nil, fmt.Errorf("%w: %s", ErrTwice, name)
		}
		found = value
	}
	return found, nil
}

// Text returns the named field as [ReadText] does.
func (f Fields) Text(name string) string { return ReadText(f[name]) }

// Word returns the named field as a text in one line of at most 200 characters, safe to show.
func (f Fields) Word(name string) string { return sanitize.Message(f.Text(name), 200) }

// Time returns the named field as [ParseTime] does.
func (f Fields) Time(name string) time.Time { return ParseTime(f.Text(name)) }

// Count returns the named field where it is a number of things; -1 where it is not.
func (f Fields) Count(name string) int {
	if n, err := strconv.Atoi(strings.TrimSpace(f.Text(name))); err == nil && n >= 0 {
		return n
	}
	return -1
}

// ReadText reads a value that should be a string and may come as a number or a boolean. Null, a missing value and anything
// else give an empty text.
func ReadText(raw json.RawMessage) string {
	var text string
	if len(raw) == 0 || json.Unmarshal(raw, &text) == nil || raw[0] == '{' || raw[0] == '[' {
		return text
	}
	return string(raw)
}

// ReadTexts reads an array of values that [ReadText] reads, or one such value alone.
func ReadTexts(raw json.RawMessage) (all []string) {
	var many []json.RawMessage
	if json.Unmarshal(raw, &many) != nil {
		if one := ReadText(raw); one != "" {
			all = append(all, one)
		}
		return all
	}
	for _, one := range many {
		all = append(all, ReadText(one))
	}
	return all
}

// ReadRecords splits an answer into its elements: a bare array, an array in one of the named fields of an object, or, with
// neither, the object alone.
func ReadRecords(body []byte, fields ...string) ([]json.RawMessage, error) {
	body = trimBOM(body)
	var list []json.RawMessage
	if err := json.Unmarshal(body, &list); err == nil && list != nil {
		return list, nil
	}
	object, err := ReadFields(body, fields...)
	if err != nil {
		return nil, err
	}
	for _, f := range fields {
		if json.Unmarshal(object[f], &list) == nil && list != nil {
			return list, nil
		}
	}
	return []json.RawMessage{body}, nil
}

// ParseTime reads a service's times: RFC 3339, the same without a zone, which is then UTC, or the day first, as in
// "28/03/2024, 10:17:02", in UTC. Any other text gives the zero time.
func ParseTime(s string) time.Time {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02", "02/01/2006, 15:04:05", "02/01/2006"} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC()
		}
	}
	return time.Time{}
}

// trimBOM removes the byte order mark that some services put before their JSON.
func trimBOM(body []byte) []byte { return bytes.TrimPrefix(body, []byte("\xef\xbb\xbf")) }
