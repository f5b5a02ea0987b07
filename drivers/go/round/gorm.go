package main

import (
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"
)

// A gormOwner has pets, and the columns that people give their models.
type gormOwner struct {
	gorm.Model
	Name    string `gorm:"size:100;not null;uniqueIndex"`
	Email   *string
	Age     int     `gorm:"default:18;index:idx_age_active"`
	Active  bool    `gorm:"not null;default:true;index:idx_age_active"`
	Score   float64 `gorm:"type:double precision"`
	Small   int16
	Wide    int64
	Data    []byte
	Token   string    `gorm:"type:uuid;default:gen_random_uuid()"`
	Born    time.Time `gorm:"type:date"`
	Seen    *time.Time
	Extra   string      `gorm:"type:jsonb;default:'{}'"`
	Pets    []gormPet   `gorm:"foreignKey:OwnerID;constraint:OnDelete:CASCADE"`
	Profile gormProfile `gorm:"foreignKey:OwnerID"`
}

type gormPet struct {
	ID      uint
	Name    string
	Kind    string `gorm:"check:kind <> 'dragon'"`
	OwnerID uint
	Tags    []gormTag `gorm:"many2many:gorm_pet_tags"`
}

type gormProfile struct {
	OwnerID uint `gorm:"primaryKey;autoIncrement:false"`
	Bio     string
}

type gormTag struct {
	Code string `gorm:"primaryKey;size:10"`
	Text string `gorm:"unique"`
}

// A gormWider is the table of owners after a change of the program.
type gormWider struct {
	gorm.Model
	Name   string    `gorm:"size:100;not null;uniqueIndex:idx_gorm_owners_name"`
	Height int       `gorm:"index"`
	Born   time.Time `gorm:"type:date"`
	Extra  string    `gorm:"type:jsonb;default:'{}'"`
}

func (gormWider) TableName() string { return "gorm_owners" }

type gormTest struct{ db *gorm.DB }

func code(err error) string {
	var refusal *pgconn.PgError
	if errors.As(err, &refusal) {
		return refusal.Code
	}
	return "none"
}

func ok(result *gorm.DB) int64 {
	must(result.Error)
	return result.RowsAffected
}

func (owner gormOwner) shown() []any {
	email, seen := "none", time.Time{}
	if owner.Email != nil {
		email = *owner.Email
	}
	if owner.Seen != nil {
		seen = *owner.Seen
	}
	return []any{owner.ID, owner.Name, email, owner.Age, owner.Active, owner.Score, owner.Small, owner.Wide, owner.Data,
		len(owner.Token), owner.Born, seen, owner.Extra, len(owner.Pets), owner.Profile.Bio, owner.CreatedAt.IsZero(), owner.DeletedAt.Valid}
}

func (t *gormTest) migrate() {
	models := []any{&gormOwner{}, &gormProfile{}, &gormTag{}, &gormPet{}}
	for _, name := range []string{"gorm_pet_tags", "gorm_pets", "gorm_profiles", "gorm_tags", "gorm_owners"} {
		must(t.db.Exec("DROP TABLE IF EXISTS " + name).Error)
	}
	must(t.db.AutoMigrate(models...))
	must(t.db.AutoMigrate(models...))
	migrator := t.db.Migrator()
	say("HasTable", []any{migrator.HasTable(&gormOwner{}), migrator.HasTable("nosuch"), migrator.HasTable("gorm_pet_tags")})
	say("HasColumn", []any{migrator.HasColumn(&gormOwner{}, "Age"), migrator.HasColumn(&gormOwner{}, "nosuch")})
	say("HasIndex", []any{migrator.HasIndex(&gormOwner{}, "idx_age_active"), migrator.HasIndex(&gormOwner{}, "nosuch")})
	tables, err := migrator.GetTables()
	must(err)
	count := 0
	for _, name := range tables {
		if len(name) > 5 && name[:5] == "gorm_" {
			count++
		}
	}
	say("tables", count)
	columns, err := migrator.ColumnTypes(&gormOwner{})
	must(err)
	for _, column := range columns {
		nullable, _ := column.Nullable()
		key, _ := column.PrimaryKey()
		unique, _ := column.Unique()
		length, _ := column.Length()
		say("column", []any{column.Name(), column.DatabaseTypeName(), nullable, key, unique, length})
	}
}

func owners() []gormOwner {
	email, seen := "a@example.org", time.Date(2024, 2, 29, 1, 2, 3, 4_000, time.UTC)
	return []gormOwner{
		{Name: "ann", Email: &email, Age: 30, Active: true, Score: 1.5, Small: -5, Wide: 1 << 40, Data: []byte{0, 255, 39},
			Token: "00000000-0000-0000-0000-000000000001", Born: time.Date(1990, 2, 28, 0, 0, 0, 0, time.UTC), Seen: &seen, Extra: `{"a": [1]}`,
			Pets:    []gormPet{{Name: "rex", Kind: "dog"}, {Name: "tom", Kind: "cat", Tags: []gormTag{{Code: "x", Text: "loud"}}}},
			Profile: gormProfile{Bio: "it's \\ é"}},
		{Name: "bob", Born: time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)},
		{Name: "cat", Age: 40, Born: time.Date(1, 1, 2, 0, 0, 0, 0, time.UTC), Pets: []gormPet{{Name: "tim", Kind: "cat"}}},
	}
}

func (t *gormTest) create() {
	all := owners()
	say("one", ok(t.db.Create(&all[0])))
	say("ids", []any{all[0].ID, all[0].Pets[0].ID, all[0].Pets[1].ID, all[0].Profile.OwnerID})
	two := all[1:]
	say("two", ok(t.db.Create(&two)))
	for _, owner := range two {
		say("made", owner.shown())
	}
	say("batches", ok(t.db.CreateInBatches([]gormTag{{"a", "1"}, {"b", "2"}, {"c", "3"}}, 2)))
	say("nothing", ok(t.db.Clauses(clause.OnConflict{DoNothing: true}).Create(&gormTag{"a", "again"})))
	say("upsert", ok(t.db.Clauses(clause.OnConflict{UpdateAll: true}).Create(&gormTag{"a", "one"})))
	say("duplicate", code(t.db.Create(&gormTag{"a", "twice"}).Error))
	say("map", ok(t.db.Model(&gormTag{}).Create(map[string]any{"Code": "m", "Text": "map"})))
	say("check", code(t.db.Create(&gormPet{Name: "d", Kind: "dragon", OwnerID: 1}).Error))
	say("foreign", code(t.db.Create(&gormPet{Name: "d", Kind: "dog", OwnerID: 4711}).Error))
}

func (t *gormTest) show(what string, query *gorm.DB) {
	var found []gormOwner
	must(query.Order("id").Find(&found).Error)
	say(what, len(found))
	for _, owner := range found {
		say("  owner", owner.shown())
	}
}

func (t *gormTest) found() {
	t.show("all", t.db)
	t.show("preload", t.db.Preload("Pets").Preload("Profile"))
	t.show("where", t.db.Where("name = ?", "ann"))
	t.show("struct", t.db.Where(&gormOwner{Age: 40}))
	t.show("map", t.db.Where(map[string]any{"active": true, "name": []string{"ann", "bob"}}))
	t.show("in", t.db.Where("id IN ?", []int{1, 3}))
	t.show("date", t.db.Where("born < ?", time.Date(1985, 1, 1, 0, 0, 0, 0, time.UTC)))
	t.show("time", t.db.Where("seen = ?", time.Date(2024, 2, 29, 1, 2, 3, 4_000, time.UTC)))
	t.show("uuid", t.db.Where("token = ?", "00000000-0000-0000-0000-000000000001"))
	t.show("bytes", t.db.Where("data = ?", []byte{0, 255, 39}))
	t.show("not", t.db.Not("name LIKE ?", "a%").Or("wide > ?", 5))
	t.show("joins", t.db.Joins("Profile"))
	t.show("sub", t.db.Where("id IN (?)", t.db.Model(&gormPet{}).Select("owner_id")))
	var first gormOwner
	must(t.db.First(&first, "name = ?", "ann").Error)
	say("first", first.shown())
	must(t.db.First(&gormOwner{}, 2).Error)
	must(t.db.Take(&gormOwner{}).Error)
	must(t.db.Last(&first).Error)
	say("none", errors.Is(t.db.First(&gormOwner{}, 4711).Error, gorm.ErrRecordNotFound))
	var count int64
	ok(t.db.Model(&gormOwner{}).Where("age > ?", 20).Count(&count))
	say("count", count)
	var names []string
	ok(t.db.Model(&gormOwner{}).Order("name desc").Limit(2).Offset(1).Pluck("name", &names))
	say("names", names)
	var sums []struct {
		Kind  string
		Total int64
		Most  uint
	}
	ok(t.db.Model(&gormPet{}).Select("kind, count(*) AS total, max(id) AS most").Group("kind").Having("count(*) > ?", 0).Order("kind").Scan(&sums))
	say("sums", sums)
	var tagged []gormPet
	ok(t.db.Preload("Tags").Order("id").Find(&tagged))
	say("tagged", tagged)
	must(t.db.Where(gormOwner{Name: "dan"}).Attrs(gormOwner{Age: 7, Born: time.Unix(0, 0).UTC()}).FirstOrCreate(&gormOwner{}).Error)
	must(t.db.Where(gormOwner{Name: "dan"}).FirstOrCreate(&gormOwner{}).Error)
	var raw []map[string]any
	ok(t.db.Raw("SELECT id, name, active, born, data, wide FROM gorm_owners WHERE id < ? ORDER BY id", 3).Scan(&raw))
	for _, row := range raw {
		say("raw", []any{row["id"], row["name"], row["active"], row["born"], row["data"], row["wide"]})
	}
	found, err := t.db.Model(&gormOwner{}).Order("id").Rows()
	must(err)
	defer found.Close()
	for found.Next() {
		var owner gormOwner
		must(t.db.ScanRows(found, &owner))
		say("scanned", owner.ID)
	}
}

func (t *gormTest) changes() {
	var ann gormOwner
	must(t.db.First(&ann, 1).Error)
	say("update", ok(t.db.Model(&ann).Update("name", "anna")))
	say("updates", ok(t.db.Model(&ann).Updates(gormOwner{Age: 31, Data: []byte{1}})))
	say("map", ok(t.db.Model(&ann).Updates(map[string]any{"active": false, "email": nil, "born": time.Unix(0, 0).UTC()})))
	say("expression", ok(t.db.Model(&gormOwner{}).Where("age > ?", 10).Update("age", gorm.Expr("age + ?", 1))))
	ann.Score = 2.5
	say("save", ok(t.db.Save(&ann)))
	var returned []gormOwner
	say("returning", ok(t.db.Model(&returned).Clauses(clause.Returning{}).Where("name = ?", "bob").Update("wide", 7)))
	say("returned", returned[0].shown())
	say("association", t.db.Model(&ann).Association("Pets").Count())
	must(t.db.Model(&ann).Association("Pets").Append(&gormPet{Name: "new", Kind: "dog"}))
	say("soft", ok(t.db.Delete(&gormOwner{}, "name = ?", "bob")))
	t.show("rest", t.db)
	t.show("unscoped", t.db.Unscoped())
	say("hard", ok(t.db.Unscoped().Delete(&gormOwner{}, 3)))
	var pets int64
	ok(t.db.Model(&gormPet{}).Count(&pets))
	say("cascade", pets)
}

func (t *gormTest) transactions() {
	err := t.db.Transaction(func(own *gorm.DB) error {
		ok(own.Create(&gormTag{"t1", "t1"}))
		inner := own.Transaction(func(inner *gorm.DB) error {
			ok(inner.Create(&gormTag{"t2", "t2"}))
			return errors.New("stop")
		})
		say("inner", inner.Error())
		return nil
	})
	must(err)
	own := t.db.Begin()
	ok(own.Create(&gormTag{"t3", "t3"}))
	must(own.SavePoint("before").Error)
	ok(own.Create(&gormTag{"t4", "t4"}))
	must(own.RollbackTo("before").Error)
	must(own.Commit().Error)
	var codes []string
	ok(t.db.Model(&gormTag{}).Where("code LIKE ?", "t%").Order("code").Pluck("code", &codes))
	say("codes", codes)
}

func (t *gormTest) widen() {
	must(t.db.AutoMigrate(&gormWider{}))
	ok(t.db.Create(&gormWider{Name: "eve", Height: 180, Born: time.Unix(0, 0).UTC(), Extra: "{}"}))
	var eve gormWider
	must(t.db.Where("height = ?", 180).First(&eve).Error)
	say("eve", []any{eve.Name, eve.Height, eve.Born})
	migrator := t.db.Migrator()
	must(migrator.RenameColumn(&gormWider{}, "height", "tall"))
	must(migrator.DropIndex(&gormWider{}, "idx_gorm_owners_height"))
	must(migrator.DropColumn(&gormWider{}, "tall"))
	say("dropped", migrator.HasColumn(&gormWider{}, "tall"))
	must(migrator.DropTable("gorm_pet_tags"))
	say("table", migrator.HasTable("gorm_pet_tags"))
}

// gormRound makes a round with statements prepared, and one in the simple protocol.
func gormRound() {
	for _, simple := range []bool{false, true} {
		config := postgres.Config{DSN: "TimeZone=UTC", PreferSimpleProtocol: simple}
		db, err := gorm.Open(postgres.New(config), &gorm.Config{Logger: logger.Discard, PrepareStmt: !simple})
		must(err)
		t := &gormTest{db}
		for _, each := range []struct {
			name string
			run  func()
		}{
			{"migrate", t.migrate}, {"create", t.create}, {"found", t.found}, {"changes", t.changes},
			{"transactions", t.transactions}, {"widen", t.widen},
		} {
			part(each.name, each.run)
		}
	}
}
