// Command program is one that uses the original package, to be changed over by a test.
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"time"

	"github.com/bwmarrin/snowflake"
)

type order struct {
	ID snowflake.ID `json:"id"`
}

func main() {
	old, err := snowflake.ParseBase58([]byte("3Amry1HHf7U"))
	if err != nil {
		log.Fatal(err)
	}
	text, err := json.Marshal(order{old})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(text), old.Base32(), old.Time(), old.Node(), old.Step())

	node, err := snowflake.NewNode(7)
	if err != nil {
		log.Fatal(err)
	}
	first, second := node.Generate(), node.Generate()
	age := time.Since(time.UnixMilli(first.Time()))
	fmt.Println(first < second, first.Node(), age < time.Minute, first > old)
}
