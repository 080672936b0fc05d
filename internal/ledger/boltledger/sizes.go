package boltledger

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"go.etcd.io/bbolt"
	"google.golang.org/protobuf/encoding/protowire"
)

// Size is what one part of a ledger takes of its file.
type Size struct {
	Bucket string // empty: the file's own
	Part   string // what of it: "keys", "pages" (what is in them beside keys and values), or a field as docs/ledger.proto names it
	Bytes  int64

	IsInflated bool // before it was deflated: not a part of the file, but of its blocks
}

// Sizes tells where the bytes of the file are: of each bucket by field of its records, as stored, and of the pages that hold
// them. The blocks of the journal are one part; what is in them comes beside it, the fields of lines with "lines." before their
// names, as in "lines.key". It reads everything in one transaction.
func (l *Ledger) Sizes() ([]Size, error) {
	m := sizeMeter{forms: map[string]map[protowire.Number][2]string{}, sizes: map[[2]string]int64{}}
	for _, t := range tables() {
		m.addForm(t)
	}
	// Before everything is read: bbolt follows a wrong page number without asking.
	err := l.checkAllPages(nil)
	if err == nil {
		err = l.view(m.measureFile)
	}
	if err != nil {
		return nil, fmt.Errorf("measure ledger: %w", err)
	}
	var all []Size
	for k, n := range m.sizes {
		_, isInflated := strings.CutPrefix(k[1], "lines")
		all = append(all, Size{Bucket: k[0], Part: k[1], Bytes: n, IsInflated: isInflated})
	}
	slices.SortFunc(all, func(a, b Size) int {
		return cmp.Or(cmp.Compare(a.Bucket, b.Bucket), cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Part, b.Part))
	})
	return all, nil
}

// sizeMeter adds up bytes by bucket and part.
type sizeMeter struct {
	forms map[string]map[protowire.Number][2]string // by the name of a message: name and type of each field
	sizes map[[2]string]int64
}

func (m *sizeMeter) addForm(t table) {
	m.forms[t.name] = map[protowire.Number][2]string{}
	for _, f := range t.fields {
		kind, number, _ := strings.Cut(f, " = ")
		var n protowire.Number
		_, _ = fmt.Sscan(number, &n) // the tables' own numbers
		at := strings.LastIndexByte(kind, ' ')
		m.forms[t.name][n] = [2]string{kind[at+1:], strings.TrimPrefix(kind[:at], "repeated ")}
	}
}

func (m *sizeMeter) add(bucket []byte, part string, n int) {
	m.sizes[[2]string{string(bucket), part}] += int64(n)
}

func (m *sizeMeter) measureFile(tx *bbolt.Tx) error {
	used := 0
	for _, bucket := range buckets {
		b := tx.Bucket(bucket)
		s, held := b.Stats(), 0
		err := b.ForEach(func(k, v []byte) error {
			m.add(bucket, "keys", len(k))
			held += len(k) + len(v)
			return m.measureRecord(bucket, k, v)
		})
		if err != nil {
			return err
		}
		pages := s.BranchAlloc + s.LeafAlloc
		m.add(bucket, "pages", pages-held)
		used += pages
	}
	m.add(nil, "free pages", int(tx.Size())-used)
	return nil
}

// measureRecord adds a value: its frame, and each of its fields.
func (m *sizeMeter) measureRecord(bucket, k, v []byte) error {
	form := formOf(bucket, k)
	if m.forms[form] == nil || len(v) < 5 {
		m.add(bucket, "values", len(v))
		return nil
	}
	m.add(bucket, "frames", 5)
	if form == blockForm.name {
		return m.measureBlock(bucket, k, v)
	}
	return m.measureMessage(bucket, form, "", v[1:len(v)-4])
}

// formOf returns the name of the message that lies under a key; empty: it is none.
func formOf(bucket, k []byte) string {
	switch &bucket[0] {
	case &openBucket[0], &doneBucket[0]:
		return entryForm.name
	case &docBucket[0]:
		if isNote(k) {
			return noteForm.name
		}
		return documentForm.name
	case &journalBucket[0]:
		return blockForm.name
	case &totalsBucket[0]:
		return totalForm.name
	case &countsBucket[0]:
		return countForm.name
	case &scanBucket[0]:
		return scanForm.name
	}
	return ""
}

// measureMessage adds each field with its tag and length; those of a message within it by their own names.
func (m *sizeMeter) measureMessage(bucket []byte, form, path string, b []byte) error {
	for len(b) > 0 {
		number, typ, tag := protowire.ConsumeTag(b)
		value := protowire.ConsumeFieldValue(number, typ, b[max(tag, 0):])
		if tag < 0 || value < 0 {
			return damage("%s: a field of %s cannot be read", bucket, form)
		}
		field := m.forms[form][number]
		inner, _ := protowire.ConsumeBytes(b[tag:])
		if m.forms[field[1]] != nil && typ == protowire.BytesType {
			m.add(bucket, path+field[0], tag+value-len(inner))
			if err := m.measureMessage(bucket, field[1], path+field[0]+".", inner); err != nil {
				return err
			}
		} else {
			m.add(bucket, path+field[0], tag+value)
		}
		b = b[tag+value:]
	}
	return nil
}

// measureBlock adds a block of the journal as it is stored, and its lines by field.
func (m *sizeMeter) measureBlock(bucket, k, v []byte) error {
	_, b, err := decodeBlock(k, v)
	if err != nil {
		return err
	}
	m.add(bucket, "blocks", len(v)-5)
	for _, line := range b.lines {
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(line, &fields); err != nil {
			return damage("%v", err)
		}
		m.add(bucket, "lines", 1) // the brace; each field has a comma or the other one behind it
		for name, value := range fields {
			m.add(bucket, "lines."+name, len(name)+len(value)+4)
		}
	}
	return nil
}
