// Command sbom prints the modules of a Go program as an SPDX 2.3 document, from what the
// linker wrote into the program.
//
//	go run .ci/sbom/main.go PROGRAM NAME TIME
//
// NAME is that of the document, TIME its date in RFC 3339, so that the output depends on the
// arguments only.
package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"log"
	"net/url"
	"os"
	"runtime/debug"
	"strings"
)

type object map[string]any

// newPackage describes a module.
func newPackage(id, path, version string) object {
	return object{
		"SPDXID":           "SPDXRef-" + id,
		"name":             path,
		"versionInfo":      version,
		"downloadLocation": "NOASSERTION",
		"filesAnalyzed":    false,
		"externalRefs": []object{{
			"referenceCategory": "PACKAGE-MANAGER",
			"referenceType":     "purl",
			"referenceLocator":  "pkg:golang/" + path + "@" + url.QueryEscape(version),
		}},
	}
}

// document describes a program, which is given by its content and by the modules in it.
func document(info *debug.BuildInfo, program []byte, name, created string) object {
	sum := fmt.Sprintf("%x", sha256.Sum256(program))
	described := newPackage("program", info.Main.Path, info.Main.Version)
	described["primaryPackagePurpose"] = "APPLICATION"
	described["checksums"] = []object{{"algorithm": "SHA256", "checksumValue": sum}}
	packages := []object{described}
	relations := []object{{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": "SPDXRef-program"}}
	link := func(module object) {
		packages = append(packages, module)
		relations = append(relations, object{"spdxElementId": "SPDXRef-program", "relationshipType": "STATIC_LINK", "relatedSpdxElement": module["SPDXID"]})
	}
	link(newPackage("stdlib", "stdlib", strings.TrimPrefix(info.GoVersion, "go")))
	for i, dep := range info.Deps {
		module := newPackage(fmt.Sprintf("module-%d", i+1), dep.Path, dep.Version)
		module["comment"] = "in go.sum: " + dep.Sum
		link(module)
	}
	return object{
		"spdxVersion":       "SPDX-2.3",
		"dataLicense":       "CC0-1.0",
		"SPDXID":            "SPDXRef-DOCUMENT",
		"name":              name,
		"documentNamespace": "https://" + info.Main.Path + "/sbom/" + name + "/" + sum,
		"creationInfo":      object{"created": created, "creators": []string{"Tool: tickflake-sbom"}},
		"packages":          packages,
		"relationships":     relations,
	}
}

func main() {
	if len(os.Args) != 4 {
		log.Fatal("usage: sbom PROGRAM NAME TIME")
	}
	program, err := os.ReadFile(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	info, err := buildinfo.Read(bytes.NewReader(program))
	if err != nil {
		log.Fatal(err)
	}
	out := json.NewEncoder(os.Stdout)
	out.SetIndent("", "  ")
	if err := out.Encode(document(info, program, os.Args[2], os.Args[3])); err != nil {
		log.Fatal(err)
	}
}
