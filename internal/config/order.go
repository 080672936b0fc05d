package config

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// schemaProperties keep the order in which they are written.
type schemaProperties map[string]*schemaNode

func (p *schemaProperties) UnmarshalJSON(raw []byte) error {
	*p = schemaProperties{}
	dec := json.NewDecoder(bytes.NewReader(raw))
	if _, err := dec.Token(); err != nil {
		return err
	}
	for i := 0; dec.More(); i++ {
		name, err := dec.Token()
		if err != nil {
			return err
		}
		n := &schemaNode{place: i}
		if err := dec.Decode(n); err != nil {
			return err
		}
		(*p)[fmt.Sprint(name)] = n
	}
	return nil
}

// inOrder gives the names as the schema file has them.
func (n *schemaNode) inOrder() []string {
	return slices.SortedFunc(maps.Keys(n.Properties), func(a, b string) int {
		return cmp.Or(cmp.Compare(n.Properties[a].place, n.Properties[b].place), cmp.Compare(a, b))
	})
}
