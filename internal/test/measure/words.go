package main

import (
	"regexp"
	"strings"
)

// privateWords are the words that had a meaning in this project alone, or that
// a reader with English as a second language stumbles over. Each is a regular
// expression.
var privateWords = []string{
	`tells?`, `told`, `telling`,
	`a person`, `a human`, `human acts?`, `somebody`, `nobody`,
	`lies`, `stands?`, `stood`,
	`go(?:es)? on`, `going on`, `went on`,
	`comes? back`, `came back`, `given back`, `gives? back`,
	`puts? back`, `put right`, `puts? right`, `mend(?:s|ed|ing)?`,
	`held against`, `holds? .{1,30} against`,
	`anew`, `beside`, `by itself`, `of its own`, `for ever`, `in doubt`, `known are`,
	`strikes?`, `plays?`, `blows?`, `mishaps?`,
	`he`, `his`, `him`,
}

var (
	privatePattern  = regexp.MustCompile(`(?i)\b(?:` + strings.Join(privateWords, "|") + `)\b`)
	negationPattern = regexp.MustCompile(`(?i)\b(?:not|no|never|nothing|nobody|none|neither|nor|nowhere|without|cannot)\b|n't\b`)
	headlessPattern = regexp.MustCompile(`^(?:What|One that|Of what|Of which|Who|Where|That which|Nobody|Whoever|Whatever)\b`)
)
