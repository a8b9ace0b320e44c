package snowflake_test

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tickflake/tickflake/snowflake"
)

// An ID in a struct becomes a JSON string, which JavaScript reads without
// rounding. A number from another writer is accepted too.
func ExampleID_MarshalJSON() {
	type order struct {
		ID    snowflake.ID `json:"id"`
		Items int          `json:"items"`
	}
	data, err := json.Marshal(order{ID: 1541815603606036480, Items: 3})
	fmt.Println(string(data), err)

	var got order
	err = json.Unmarshal([]byte(`{"id": 1541815603606036480, "items": 3}`), &got)
	fmt.Println(got.ID, err)
	// Output:
	// {"id":"1541815603606036480","items":3} <nil>
	// 1541815603606036480 <nil>
}

// Two consecutive IDs in the forms that sort as text.
func ExampleID_Base32() {
	for _, id := range []snowflake.ID{1541815603606036480, 1541815603606036481} {
		fmt.Println(id.Base32(), id.Base58(), id.Base62())
	}
	// Output:
	// 1ASD13XH1F800 4aaW4SzAyQK 1ptWyK4WgZU
	// 1ASD13XH1F801 4aaW4SzAyQL 1ptWyK4WgZV
}

// The message is for people; a program asks for the cause.
func ExampleParse() {
	_, err := snowflake.Parse("1541815603606O36480")
	fmt.Println(err)
	fmt.Println(errors.Is(err, snowflake.ErrSyntax))
	// Output:
	// decimal ID "1541815603606O36480": malformed: bad character "O" at offset 13
	// true
}

// A column that may be NULL is scanned into a sql.Null, any other into an ID.
func ExampleID_Scan() {
	var parent sql.Null[snowflake.ID]
	for _, column := range []any{int64(1541815603606036480), nil} {
		err := parent.Scan(column)
		fmt.Println(parent.V, parent.Valid, err)
	}

	var id snowflake.ID
	fmt.Println(errors.Is(id.Scan(nil), snowflake.ErrType))
	// Output:
	// 1541815603606036480 true <nil>
	// 0 false <nil>
	// true
}
