"""Questions over the shop: what each becomes, and those that must not become any condition."""

from __future__ import annotations

from typing import Any

OCTOBER = ["ordered_at < 2026-11-01 00:00:00", "ordered_at >= 2026-10-01 00:00:00"]

PLACED: dict[str, tuple[str, list[str]]] = {
    "Products cheaper than $100 from Apple": ("product", ["brand = Apple", "price < 100"]),
    "find all active products under $100 in electronics category": (
        "product",
        ["category = Electronics", "price < 100", "status = active"],
    ),
    "Show me products under $100": ("product", ["price < 100"]),
    "products under $100": ("product", ["price < 100"]),
    "products over $1k": ("product", ["price > 1000"]),
    "products under 1,500 dollars": ("product", ["price < 1500"]),
    "products priced at $99.99": ("product", ["price = 99.99"]),
    "products not more than $30": ("product", ["price <= 30"]),
    "products between $50 and $100": ("product", ["price between [50, 100]"]),
    "laptops from 500 to 900 dollars": (
        "product",
        ["category = Laptops", "price between [500, 900]"],
    ),
    "audio $50-$100": ("product", ["category = Audio", "price between [50, 100]"]),
    "rating of at least 4.7 and price under 50": ("product", ["price < 50", "rating >= 4.7"]),
    "laptops with rating above 4.5 and under $1000": (
        "product",
        ["category = Laptops", "price < 1000", "rating > 4.5"],
    ),
    "products with at least 4.5 stars": ("product", ["rating >= 4.5"]),
    "books with 4.8+ stars": ("product", ["category = Books", "rating >= 4.8"]),
    "books 4.8 stars and above": ("product", ["category = Books", "rating >= 4.8"]),
    "books with no less than 4.8 stars": ("product", ["category = Books", "rating >= 4.8"]),
    "Apple or Samsung phones": ("product", ["brand in ['Apple', 'Samsung']", "category = Phones"]),
    "laptop or phone under $700": ("product", ["category in ['Laptops', 'Phones']", "price < 700"]),
    "products not from Apple": ("product", ["brand != Apple"]),
    "non-Apple phones": ("product", ["brand != Apple", "category = Phones"]),
    "active products except Apple and Sony": (
        "product",
        ["brand not in ['Apple', 'Sony']", "status = active"],
    ),
    "featured products": ("product", ["featured = True"]),
    "products that are not featured": ("product", ["featured = False"]),
    "products in stock": ("product", ["stock > 0"]),
    "out of stock laptops": ("product", ["category = Laptops", "stock = 0"]),
    "more than 100 in stock": ("product", ["stock > 100"]),
    "products with fewer than 10 units": ("product", ["stock < 10"]),
    "products without a description": ("product", ["description null"]),
    "products called Magic": ("product", ["name like Magic"]),
    "brand is Acme": ("product", ["brand = Acme"]),
    "category: electronics": ("product", ["category = Electronics"]),
    "What is the price of the iPad mini?": ("product", ["name = iPad mini"]),
    "products newer than 2025": ("product", ["released_at >= 2026-01-01"]),
    "products released before 2020": ("product", ["released_at < 2020-01-01"]),
    "products released in the last 90 days": (
        "product",
        ["released_at < 2026-11-13", "released_at >= 2026-08-14"],
    ),
    "electroncs under $50": ("product", ["category = Electronics", "price < 50"]),
    "orders last month": ("order", OCTOBER),
    "cancelled orders in October": ("order", [*OCTOBER, "status = cancelled"]),
    "orders since March": ("order", ["ordered_at >= 2026-03-01 00:00:00"]),
    "orders before 2026": ("order", ["ordered_at < 2026-01-01 00:00:00"]),
    "orders this week": (
        "order",
        ["ordered_at < 2026-11-16 00:00:00", "ordered_at >= 2026-11-09 00:00:00"],
    ),
    "orders from yesterday": (
        "order",
        ["ordered_at < 2026-11-12 00:00:00", "ordered_at >= 2026-11-11 00:00:00"],
    ),
    "orders today": (
        "order",
        ["ordered_at < 2026-11-13 00:00:00", "ordered_at >= 2026-11-12 00:00:00"],
    ),
    "orders from 2 days ago": (
        "order",
        ["ordered_at < 2026-11-11 00:00:00", "ordered_at >= 2026-11-10 00:00:00"],
    ),
    "orders on March 5th, 2026": (
        "order",
        ["ordered_at < 2026-03-06 00:00:00", "ordered_at >= 2026-03-05 00:00:00"],
    ),
    "orders between March and May 2026": (
        "order",
        ["ordered_at < 2026-06-01 00:00:00", "ordered_at >= 2026-03-01 00:00:00"],
    ),
    "orders in Q1 2026": (
        "order",
        ["ordered_at < 2026-04-01 00:00:00", "ordered_at >= 2026-01-01 00:00:00"],
    ),
    "orders older than 6 months": ("order", ["ordered_at < 2026-05-12 00:00:00"]),
    "orders less than a week old": ("order", ["ordered_at >= 2026-11-05 00:00:00"]),
    "orders shipped last week": ("order", ["shipped_at < 2026-11-09", "shipped_at >= 2026-11-02"]),
    "pending or paid orders over $500": ("order", ["status in ['pending', 'paid']", "total > 500"]),
    "refunded orders with total between 100 and 200": (
        "order",
        ["status = refunded", "total between [100, 200]"],
    ),
    "customer orders over $500": ("order", ["total > 500"]),
    "orders over 2000": ("order", ["total > 2000"]),
    "order 42": ("order", ["id = 42"]),
    "status of order SO-10744": ("order", ["number = SO-10744"]),
    "Show me Alice Martin's orders for AirPods Pro": (
        "order",
        ["customer = Alice Martin", "product = AirPods Pro"],
    ),
    "orders that are not gifts": ("order", ["gift = False"]),
    "customers from Germany": ("customer", ["country = Germany"]),
    "gold customers who joined before 2025": (
        "customer",
        ["joined_at < 2025-01-01", "tier = gold"],
    ),
    "customers who joined in the last year": (
        "customer",
        ["joined_at < 2026-11-13", "joined_at >= 2025-11-12"],
    ),
    "customers in Berlin not subscribed to the newsletter": (
        "customer",
        ["city = Berlin", "newsletter = False"],
    ),
    "customers in Lisbon or London": ("customer", ["city in ['Lisbon', 'London']"]),
}


NOT_OCTOBER = [
    {"field": "ordered_at", "op": "<", "value": "2026-10-01 00:00:00"},
    {"field": "ordered_at", "op": ">=", "value": "2026-11-01 00:00:00"},
]

# What several words become together: the query as JSON, without what is implied.
BUILT: dict[str, dict[str, Any]] = {
    "orders to Berlin or over $2000": {
        "model": "order",
        "wheres": [
            {
                "or": [
                    {"field": "city", "op": "=", "value": "Berlin"},
                    {"field": "total", "op": ">", "value": 2000},
                ]
            }
        ],
    },
    "featured phones under $500 or rated above 4.6": {
        "model": "product",
        "wheres": [
            {"field": "featured", "op": "=", "value": True},
            {"field": "category", "op": "=", "value": "Phones"},
            {
                "or": [
                    {"field": "price", "op": "<", "value": 500},
                    {"field": "rating", "op": ">", "value": 4.6},
                ]
            },
        ],
    },
    "books under $15 or products rated above 4.8": {
        "model": "product",
        "wheres": [
            {
                "or": [
                    {
                        "and": [
                            {"field": "category", "op": "=", "value": "Books"},
                            {"field": "price", "op": "<", "value": 15},
                        ]
                    },
                    {"field": "rating", "op": ">", "value": 4.8},
                ]
            }
        ],
    },
    "laptops under $500 or over $2000": {
        "model": "product",
        "wheres": [
            {"field": "category", "op": "=", "value": "Laptops"},
            {
                "or": [
                    {"field": "price", "op": "<", "value": 500},
                    {"field": "price", "op": ">", "value": 2000},
                ]
            },
        ],
    },
    "how many orders were cancelled?": {
        "model": "order",
        "wheres": [{"field": "status", "op": "=", "value": "cancelled"}],
        "aggregates": [{"function": "count"}],
    },
    "average price of phones": {
        "model": "product",
        "wheres": [{"field": "category", "op": "=", "value": "Phones"}],
        "aggregates": [{"function": "avg", "field": "price"}],
    },
    "number of products per brand": {
        "model": "product",
        "groups": ["brand"],
        "aggregates": [{"function": "count"}],
    },
    "what is the highest rating?": {
        "model": "product",
        "aggregates": [{"function": "max", "field": "rating"}],
    },
    "how many different brands are there": {
        "model": "product",
        "aggregates": [{"function": "count", "field": "brand", "distinct": True}],
    },
    "orders of customers from Germany": {
        "model": "order",
        "wheres": [{"field": "buyer.country", "op": "=", "value": "Germany"}],
    },
    "orders of products by Apple": {
        "model": "order",
        "wheres": [{"field": "item.brand", "op": "=", "value": "Apple"}],
    },
    "customers without orders": {
        "model": "customer",
        "wheres": [{"field": "orders", "op": "null", "value": None}],
    },
    "orders worth less than $20 or more": {
        "model": "order",
        "wheres": [{"field": "total", "op": ">=", "value": 20}],
    },
    "products with price not between 50 and 100": {
        "model": "product",
        "wheres": [
            {
                "or": [
                    {"field": "price", "op": "<", "value": 50},
                    {"field": "price", "op": ">", "value": 100},
                ]
            }
        ],
    },
    "orders not in October": {"model": "order", "wheres": [{"or": NOT_OCTOBER}]},
    "anything but Apple phones": {
        "model": "product",
        "wheres": [
            {
                "or": [
                    {"field": "brand", "op": "!=", "value": "Apple"},
                    {"field": "category", "op": "!=", "value": "Phones"},
                ]
            },
        ],
    },
    "products that are neither Apple nor Samsung": {
        "model": "product",
        "wheres": [{"field": "brand", "op": "not in", "value": ["Apple", "Samsung"]}],
    },
    "laptops around $1000": {
        "model": "product",
        "wheres": [
            {"field": "category", "op": "=", "value": "Laptops"},
            {"field": "price", "op": "between", "value": [900, 1100]},
        ],
    },
    "products rated 4 to 4.5": {
        "model": "product",
        "wheres": [{"field": "rating", "op": "between", "value": [4, 4.5]}],
    },
    "products rated 2 stars or lower": {
        "model": "product",
        "wheres": [{"field": "rating", "op": "<=", "value": 2}],
    },
    "average order value per customer": {
        "model": "order",
        "groups": ["customer"],
        "aggregates": [{"function": "avg", "field": "total"}],
    },
    "which brand has the most products?": {
        "model": "product",
        "groups": ["brand"],
        "aggregates": [{"function": "count"}],
        "limit": 1,
    },
    "orders of customer Alice": {
        "model": "order",
        "wheres": [{"field": "buyer.name", "op": "like", "value": "Alice"}],
    },
    "orders over 1.000": {
        "model": "order",
        "wheres": [{"field": "total", "op": ">", "value": 1000}],
    },
    "products with a rating of at least 4.7": {
        "model": "product",
        "wheres": [{"field": "rating", "op": ">=", "value": 4.7}],
    },
    "products with a rating": {
        "model": "product",
        "wheres": [{"field": "rating", "op": "not null", "value": None}],
    },
    "products with stock": {
        "model": "product",
        "wheres": [{"field": "stock", "op": ">", "value": 0}],
    },
    "my next order": {
        "model": "order",
        "wheres": [{"field": "ordered_at", "op": ">=", "value": "2026-11-12 10:00:00"}],
        "limit": 1,
    },
    "products released in the 2010s": {
        "model": "product",
        "wheres": [
            {"field": "released_at", "op": ">=", "value": "2010-01-01"},
            {"field": "released_at", "op": "<", "value": "2020-01-01"},
        ],
    },
    "customers who joined next month": {
        "model": "customer",
        "wheres": [
            {"field": "joined_at", "op": ">=", "value": "2026-12-01"},
            {"field": "joined_at", "op": "<", "value": "2027-01-01"},
        ],
    },
}


ORDERED: dict[str, tuple[list[str], int | None]] = {
    "top 5 newest phones": (["released_at desc"], 5),
    "the cheapest laptop": (["price asc"], 1),
    "the cheapest laptops": (["price asc"], None),
    "10 cheapest active toys": (["price asc"], 10),
    "most expensive orders of 2025": (["total desc"], None),
    "least expensive audio": (["price asc"], None),
    "highest rated books": (["rating desc"], None),
    "best rated kitchen products sorted by price": (["rating desc", "price asc"], None),
    "products by brand": (["brand asc"], None),
    "sort products by price descending": (["price desc"], None),
    "what are the 3 oldest orders": (["ordered_at asc"], 3),
    "last 5 orders": (["ordered_at desc"], 5),
    "my last order": (["ordered_at desc"], 1),
    "top 3 products": (["rating desc"], 3),
}


TRAPS: dict[str, str] = {
    "at least you tried": "'at least' with nothing to compare, and no 'least'",
    "last but not least": "an order that orders nothing",
    "over the moon": "a preposition",
    "products under the sea": "a preposition before no number",
    "between a rock and a hard place": "no range",
    "more than words": "no number",
    "march of the penguins": "no month",
    "may the force be with you": "no month",
    "newer is not always better": "no date",
    "the most popular brand": "no order of records",
    "older than the hills": "no date",
    "up to you": "no limit",
    "the price of freedom is high": "a field without a value",
    "How do I grow apples at home?": "neither the brand nor the category",
    "products with more than 5 hamsters": "a number of what no field counts",
    "products with at least 3 reviews": "a number of what no field counts",
    "customers with more than 5 orders": "another model would have to be counted",
    "top secret documents": "no limit",
    "I may order later": "no order by anything",
    "applet": "near to a brand, and not the brand",
    "customers from Atlantis": "no country that is known",
    "thank you": "nothing at all",
    "released on a Monday": "any Monday, and not the last one",
    "boots": "near to a category, and not the category",
    "customers from Atlantis or Lemuria": "no alternatives that are known",
}
