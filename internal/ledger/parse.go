package ledger

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// IsArrivalLine reports whether a stored line is about something that comes in, and about no entry. It does not parse the line.
func IsArrivalLine(stored []byte) bool { return bytes.Contains(stored, []byte(`,"kind":"`)) } // within a text the quotes would be escaped

// ParseLine reads what Encode wrote; fields it does not know are ignored.
func ParseLine(b []byte) (Line, error) {
	// The fast reader accepts less than the general one and never reads a line differently: a fuzz test holds the two together.
	if l, ok := parsePlain(string(b)); ok {
		return l, nil
	}
	var l Line
	if err := json.Unmarshal(b, &l); err != nil {
		return l, fmt.Errorf("parse journal line: %w", err)
	}
	return l, nil
}

// parsePlain reads a line as nearly all are: known fields without a space between them, text without escapes or umlauts,
// whole numbers. Of any other it says so. Checks and audits read every line there is, and were a third of their time in the
// general parser.
func parsePlain(s string) (l Line, ok bool) {
	rest, ok := strings.CutPrefix(s, "{")
	for more := ok; more; {
		var name, value string
		if name, rest, ok = cutQuoted(rest); !ok {
			return l, false
		}
		if rest, ok = strings.CutPrefix(rest, ":"); !ok {
			return l, false
		}
		if text := l.textField(name); text != nil {
			*text, rest, ok = cutQuoted(rest)
		} else {
			value, rest = cutDigits(rest)
			ok = l.setNumber(name, value)
		}
		if !ok {
			return l, false
		}
		rest, more = strings.CutPrefix(rest, ",")
	}
	return l, ok && rest == "}"
}

// cutQuoted cuts a string without escapes off.
func cutQuoted(s string) (text, rest string, ok bool) {
	if s == "" || s[0] != '"' {
		return "", s, false
	}
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return s[1:i], s[i+1:], true
		case c < ' ' || c == '\\' || c >= 0x7f:
			return "", s, false
		}
	}
	return "", s, false
}

// cutDigits cuts the figures of a whole number off.
func cutDigits(s string) (number, rest string) {
	n := 0
	for n < len(s) && '0' <= s[n] && s[n] <= '9' {
		n++
	}
	return s[:n], s[n:]
}

// textField is the field of that name, which holds text; nil: none does.
func (l *Line) textField(name string) *string {
	switch name {
	case "at":
		return &l.At
	case "event":
		return &l.Event
	case "key":
		return &l.Key
	case "state":
		return &l.State
	case "source":
		return &l.Source
	case "vault":
		return &l.Vault
	case "clientUUID":
		return &l.ID
	case "bumId":
		return &l.Remote
	case "seal":
		return &l.Seal
	case "word":
		return &l.Status
	case "time":
		return &l.Time
	case "cause":
		return &l.Cause
	case "other":
		return &l.Other
	case "flags":
		return &l.Flags
	case "reason":
		return &l.Reason
	case "ledger":
		return &l.Ledger
	case "environment":
		return &l.Environment
	case "route":
		return &l.Route
	case "item":
		return &l.Item
	case "file":
		return &l.File
	case "kind":
		return &l.Kind
	}
	return nil
}

// setNumber sets the field of that name, which holds a number.
func (l *Line) setNumber(name, value string) bool {
	if len(value) > 1 && value[0] == '0' {
		return false
	}
	bits := 63
	switch name {
	case "n":
		bits = 64
	case "rev", "files", "downloads":
		bits = 32
	}
	v, err := strconv.ParseUint(value, 10, bits)
	if err != nil {
		return false
	}
	switch name {
	case "n":
		l.N = v
	case "rev":
		l.Rev = uint32(v)
	case "size":
		l.Size = int64(v)
	case "uid":
		l.UID = new(int64(v))
	case "files":
		l.Files = uint32(v)
	case "downloads":
		l.Downloads = uint32(v)
	default:
		return false
	}
	return true
}
