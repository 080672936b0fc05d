package page

import (
	"golang.org/x/text/language"
	"golang.org/x/text/message/catalog"
)

// texts holds the texts of the pages. A text that is missing in a language stands there in English.
var texts = makeTexts()

func makeTexts() catalog.Catalog {
	b := catalog.NewBuilder(catalog.Fallback(language.English))
	for key, text := range german {
		if err := b.SetString(language.German, key, text); err != nil {
			panic("text " + key + ": " + err.Error()) // it is part of the program
		}
	}
	for key, text := range english {
		if err := b.SetString(language.English, key, text); err != nil {
			panic("text " + key + ": " + err.Error())
		}
	}
	return b
}

// english holds the texts whose key is no text for people.
var english = map[string]string{
	"on hold": "on hold", "in doubt": "in doubt", "CONTRADICTED": "contradicted by the archive", "TWICE": "archived twice", "DIFFERS": "not what was sent",
	"REJECTED AFTER DELIVERY": "rejected after delivery", "CONTRADICTED BY THE NETWORK": "contradicted by the network", "REJECTED BY RECIPIENT": "rejected by the recipient",
	"folder claimed": "taken, to be worked on", "folder returning": "on its way back", "folder returned": "given back",
	"folder keeping": "on its way to the kept ones", "folder kept": "kept with its receipt", "folder disposing": "being removed after its time",
	"folder moved": "moved out after its time", "folder gone": "deleted after its time",
	"no sidecar": "no file that describes the invoice", "other device": "on another device",
}
