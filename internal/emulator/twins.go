package emulator

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// addTwinFields adds to every object of an answer, after each field, one with the same name in capitals and another value: a
// service may add such fields any day.
func addTwinFields(raw []byte) []byte {
	raw = bytes.TrimSpace(raw)
	var elements []json.RawMessage
	var object map[string]json.RawMessage
	switch {
	case bytes.HasPrefix(raw, []byte("[")) && json.Unmarshal(raw, &elements) == nil:
		for i, e := range elements {
			elements[i] = addTwinFields(e)
		}
		return encodeJSON(elements)
	case bytes.HasPrefix(raw, []byte("{")) && json.Unmarshal(raw, &object) == nil:
		var first, twins []string
		for _, name := range slices.Sorted(maps.Keys(object)) {
			value := []byte(object[name])
			if name != "headers" && name != "fields" { // the names of HTTP headers are the same in any case
				value = addTwinFields(value)
			}
			first = append(first, string(encodeJSON(name))+":"+string(value))
			if loud := strings.ToUpper(name); loud != name {
				twins = append(twins, string(encodeJSON(loud))+":"+twinOf(name))
			}
		}
		return []byte("{" + strings.Join(append(first, twins...), ",") + "}")
	}
	return raw
}

// twinOf returns the value of the field that resembles name.
func twinOf(name string) string {
	switch name {
	case "status":
		return `"ArchivingSuccessful"`
	case "bumId", "bumid", "clientUUID":
		return `"00000000-0000-4000-8000-000000000000"`
	case "found", "start", "expires_in":
		return "1"
	case "documents":
		return "[]"
	}
	return `"twin"`
}
