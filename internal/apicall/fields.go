package apicall

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

var (
	errNoObject = errors.New("it is not a JSON object")
	// ErrTwice says that an answer gives a field twice with two values: nobody can say which one is meant.
	ErrTwice = errors.New("a field stands twice with two values")
)

// Fields are the members of a JSON object that were asked for, as they came. What the object does not have is missing
// or nil.
type Fields map[string]json.RawMessage

// ReadFields reads the named members of a JSON object. A name matches exactly, letter for letter: a service may add a
// field STATUS beside its status any day, and encoding/json would let the one stand for the other. Fields with other
// names are skipped, whatever they hold. A named field that stands twice must say the same both times; else the error
// wraps ErrTwice.
func ReadFields(object []byte, names ...string) (Fields, error) {
	dec := json.NewDecoder(bytes.NewReader(object))
	if tok, err := dec.Token(); err != nil || tok != json.Delim('{') {
		return nil, errNoObject
	}
	fields := make(Fields, len(names))
	for dec.More() {
		var value json.RawMessage
		tok, err := dec.Token()
		if err == nil {
			err = dec.Decode(&value)
		}
		if err != nil {
			return nil, errNoObject
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
		return nil, errNoObject
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errNoObject // something follows the object
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
