package readings

import (
	"testing"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/daemon"
	"vaultd/internal/emulator"
)

// hour is long enough for every reading that hides nothing.
const hour = time.Hour

// first makes the first calls of an op fail in a way.
func first(calls int, op string, f emulator.Fault) func(string, int) emulator.Fault {
	return func(is string, n int) emulator.Fault {
		if is == op && n <= calls {
			return f
		}
		return emulator.Fault{}
	}
}

// The readings that nobody needs to hear of: all is archived, once.
func TestReading_I2_I12_ArchivesUnderEach(t *testing.T) {
	oauth := func(c *emulator.Config) {
		c.Username, c.Secret, c.ClientID, c.ClientSecret = "", "", user, password
	}
	bearer := func(c *apicall.Config) { c.Auth.Method = apicall.OAuth2 }
	for name, s := range map[string]setup{
		"MostLikely":               {},
		"UsualProbeInterval":       {daemon: func(c *daemon.Config) { c.ProbeEvery = 0 }},
		"URLIsObject":              {readings: emulator.Readings{URLForm: "object"}},
		"URLIsString":              {readings: emulator.Readings{URLForm: "string"}},
		"URLHasHeaders":            {readings: emulator.Readings{URLForm: "headers"}},
		"URLHasFields":             {readings: emulator.Readings{URLForm: "fields"}},
		"AnswersInOrder":           {readings: emulator.Readings{InOrder: true}},
		"NumbersAreStrings":        {readings: emulator.Readings{NumbersAsStrings: true}},
		"NumbersAreStringsInToken": {readings: emulator.Readings{NumbersAsStrings: true}, service: oauth, client: bearer},
		"NamesInOtherCase":         {readings: emulator.Readings{TwinFields: true}},
		"NamesInOtherCaseInToken":  {readings: emulator.Readings{TwinFields: true}, service: oauth, client: bearer},
		"BumIDsInCapitals":         {readings: emulator.Readings{BumIDCase: "capital"}},
		"BumIDsInCapitalsLater":    {readings: emulator.Readings{BumIDCase: "mixed"}},
		"ETagIsMD5":                {readings: emulator.Readings{ETag: "md5"}},
		"ETagIsNoMD5":              {readings: emulator.Readings{ETag: "kms"}},
		"NoETag":                   {readings: emulator.Readings{ETag: "none"}},
		"RepeatGivesNew":           {readings: emulator.Readings{Repeat: "new"}},
		"RepeatGivesSame":          {readings: emulator.Readings{Repeat: "same"}},
		"RepeatIsRefused":          {readings: emulator.Readings{Repeat: "refuse"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			virtual(t, s, func(t *testing.T, w *world) { w.archives(hour) })
		})
	}
}
