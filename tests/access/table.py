"""Who may what: every address and method, what each person gets, and whether anything changed (``*``).

People: ``viewer``, ``approver`` and ``admin`` have their role in namespace shop of cluster prod, ``lead`` and
``chief`` are approver and admin of all of prod, ``root`` is admin of everything, ``none`` has no role, ``anon`` is not
signed in. ``login`` is a redirect to the sign-in page.

``@pod`` and ``@cluster`` say that the row is about something in a place. Its columns speak of namespace shop; in
another namespace of prod the first three find what ``away`` says, in another cluster all but root do. What is not
yours does not exist: 404, except where a list simply leaves it out.

``ANY`` stands for every method. Nothing else answers: each method that no row names is 405 (:func:`otherwise`), and
an address without a row fails.
"""

from dataclasses import dataclass

PEOPLE = ("anon", "none", "viewer", "approver", "admin", "lead", "chief", "root")
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")
NARROW = frozenset({"viewer", "approver", "admin"})
OF_PROD = frozenset({"lead", "chief"})

PAGES = """
#    address                         anon   none  viewer approver admin  lead   chief  root   away
GET  healthz                         200    200   200    200      200    200    200    200    -
GET  livez                           200    200   200    200      200    200    200    200    -
GET  login                           200    302   302    302      302    302    302    302    -
POST login                           302*   302   302    302      302    302    302    302    -
POST logout                          login  login* login* login*  login* login* login* login* -
GET  password                        login  200   200    200      200    200    200    200    -
POST password                        login  login* login* login*  login* login* login* login* -

GET  inbox                           login  200   200    200      200    200    200    200    -
GET  live                            login  200   200    200      200    200    200    200    -
GET  history                         login  200   200    200      200    200    200    200    -
GET  export                          login  200   200    200      200    200    200    200    -
GET  cycles                          login  200   200    200      200    200    200    200    -
GET  cycle@cluster                   login  404   200    200      200    200    200    200    404
GET  policy                          login  200   200    200      200    200    200    200    -
GET  extenders                       login  200   200    200      200    200    200    200    -
GET  settings                        login  200   200    200      200    200    200    200    -

GET  decision@pod                    login  404   200    200      200    200    200    200    404
GET  row@pod                         login  404   302    302      302    302    302    302    404
GET  why@pod                         login  404   302    302      302    302    302    302    404
POST approve@pod                     login  404   403    302*     302*   302*   302*   302*   404
GET  deny@pod                        login  404   403    200      200    200    200    200    404
POST deny@pod                        login  404   403    302*     302*   302*   302*   302*   404
POST undo@pod                        login  404   403    302*     302*   302*   302*   302*   404
GET  take-back@pod                   login  404   403    200      200    200    200    200    404
POST take-back@pod                   login  404   403    302*     302*   302*   302*   302*   404
GET  override@pod                    login  404   403    200      200    200    200    200    404
POST override@pod                    login  404   403    302*     302*   302*   302*   302*   404
POST retry@pod                       login  404   403    302*     302*   302*   302*   302*   404
POST go-on@pod                       login  404   403    302*     302*   302*   302*   302*   404
POST bulk@pod                        login  200   200    200      200    200    200    200    200
GET  bulk-summary@pod                login  200   200    200      200    200    200    200    200
POST bulk-apply@pod                  login  200   200    200*     200*   200*   200*   200*   200

POST start-cycle@cluster             login  404   302    302      302    302*   302*   302*   404
POST check-policy@cluster            login  200   200    200      200    200    200    200    200
POST store-policy@cluster            login  404   403    403      403    403    302*   302*   404

POST settings:arm@cluster            login  404   403    403      403    403    302*   302*   404
POST settings:disarm@cluster         login  404   403    403      403    403    302*   302*   404
POST settings:pause@cluster          login  404   403    403      403    403    302*   302*   404
POST settings:resume@cluster         login  404   403    403      403    403    302*   302*   404
POST settings:confirm-installation@cluster login 404 403  403     403    403    302*   302*   404
POST settings:connection@cluster     login  404   403    403      403    403    302*   302*   404
POST settings:settings@cluster       login  404   403    403      403    403    302*   302*   404
POST settings:add-cluster            login  403   403    403      403    403    403    302*   -
POST settings:freeze@cluster         login  404   403    403      403    302*   302*   302*   404
POST settings:freeze-all             login  403   403    403      403    403    403    302*   -
POST settings:lift@cluster           login  404   403    403      403    403    302*   302*   404
POST settings:lift-all               login  403   403    403      403    403    403    302*   -
POST settings:add-caller@cluster     login  404   403    403      403    403    200*   200*   404
POST settings:rotate@cluster         login  404   404    404      404    404    200*   200*   404
POST settings:revoke-caller@cluster  login  404   404    404      404    404    302*   302*   404
POST settings:revoke-caller-token@cluster login 404 404  404      404    404    302*   302*   404
POST settings:bind                   login  403   403    403      403    403    403    302*   -
POST settings:unbind                 login  403   403    403      403    403    403    302*   -
POST settings:add-token              login  200*  200*   200*     200*   200*   200*   200*   -
POST settings:revoke-token           login  302*  302*   302*     302*   302*   302*   302*   -
POST settings:revoke-anothers-token  login  404   404    404      404    404    404    302*   -
POST settings:add-reason             login  403   403    403      302*   403    302*   302*   -
POST settings:remove-reason          login  403   403    403      302*   403    302*   302*   -
POST settings:prefer                 login  302*  302*   302*     302*   302*   302*   302*   -
POST settings:nonsense               login  404   404    404      404    404    404    404    -
"""

API = """
#    address                         anon   none  viewer approver admin  lead   chief  root   away
GET  api-docs                        401    200   200    200      200    200    200    200    -
GET  api-schema                      401    200   200    200      200    200    200    200    -
GET  api-decision-list               401    403   200    200      200    200    200    200    -
GET  api-decision-detail@pod         401    403   200    200      200    200    200    200    404
POST api-decision-approve@pod        401    403   403    200*     200*   200*   200*   200*   404
POST api-decision-deny@pod           401    403   403    200*     200*   200*   200*   200*   404
POST api-decision-take-back@pod      401    403   403    200*     200*   200*   200*   200*   404
POST api-decision-override@pod       401    403   403    200*     200*   200*   200*   200*   404
GET  api-cycle-list                  401    403   200    200      200    200    200    200    -
GET  api-cycle-detail@cluster        401    403   200    200      200    200    200    200    404
POST api-cycle-list@cluster          401    403   403    403      403    201*   201*   201*   404
GET  api-policy-list                 401    403   200    200      200    200    200    200    -
GET  api-policy-detail@cluster       401    403   200    200      200    200    200    200    404
POST api-policy-validate             401    403   200    200      200    200    200    200    -
GET  api-freeze-list                 401    403   200    200      200    200    200    200    -
GET  api-freeze-detail@cluster       401    403   200    200      200    200    200    200    404
POST api-freeze-list@cluster         401    403   403    403      403    201*   201*   201*   404
POST api-freeze-lift@cluster         401    403   403    403      403    403    200*   200*   404
GET  api-cluster-list                401    403   200    200      200    200    200    200    -
GET  api-cluster-detail@cluster      401    403   200    200      200    200    200    200    404
POST api-cluster-confirm-installation@cluster 401 403 403 403     403    403    200*   200*   404
ANY  api-not-here                    401    403   404    404      404    404    404    404    -
"""

# The same addresses with a token of root's. A token of anybody else with all scopes gets what its owner gets.
TOKENS = """
#    address                         read   decide override configure
GET  api-docs                        200    200    200    200
GET  api-schema                      200    200    200    200
GET  api-decision-list               200    200    200    200
GET  api-decision-detail@pod         200    200    200    200
POST api-decision-approve@pod        403    200*   403    403
POST api-decision-deny@pod           403    200*   403    403
POST api-decision-take-back@pod      403    200*   403    403
POST api-decision-override@pod       403    403    200*   403
GET  api-cycle-list                  200    200    200    200
GET  api-cycle-detail@cluster        200    200    200    200
POST api-cycle-list@cluster          403    201*   403    403
GET  api-policy-list                 200    200    200    200
GET  api-policy-detail@cluster       200    200    200    200
POST api-policy-validate             200    200    200    200
GET  api-freeze-list                 200    200    200    200
GET  api-freeze-detail@cluster       200    200    200    200
POST api-freeze-list@cluster         403    201*   403    403
POST api-freeze-lift@cluster         403    403    403    200*
GET  api-cluster-list                200    200    200    200
GET  api-cluster-detail@cluster      200    200    200    200
POST api-cluster-confirm-installation@cluster 403 403 403 200*
ANY  api-not-here                    404    404    404    404
"""

SCOPES = ("read", "decide", "override", "configure")
# Tokens that are none: 401 wherever a token is read at all.
NO_TOKENS = ("expired", "revoked", "of somebody switched off", "made up")


def otherwise(method: str, route: str) -> dict[str, str]:
    """What a method gets that no row names. The API asks first who it is, and describes itself to OPTIONS."""
    if not route.startswith("api-"):
        return {"anon": "405", "none": "405", "root": "405"}
    return {"anon": "401", "root": "200" if method == "OPTIONS" else "405"}


@dataclass(frozen=True)
class Row:
    """One line of a table."""

    method: str
    address: str
    about: str
    """pod, cluster or nothing."""
    expected: tuple[tuple[str, str], ...]
    away: str

    @property
    def route(self) -> str:
        """The name of the URL pattern."""
        return self.address.partition(":")[0]

    def __str__(self) -> str:
        return f"{self.method} {self.address}{f'@{self.about}' if self.about else ''}"


def read(table: str, columns: tuple[str, ...]) -> list[Row]:
    """The rows of a table."""
    lines = (line.split() for line in table.splitlines() if line and not line.startswith("#"))
    return [
        _row(each, where, cells, columns)
        for method, where, *cells in lines
        for each in (METHODS if method == "ANY" else (method,))
    ]


def _row(method: str, where: str, cells: list[str], columns: tuple[str, ...]) -> Row:
    address, _, about = where.partition("@")
    expected = tuple(zip(columns, cells, strict=False))
    assert len(cells) in {len(columns), len(columns) + 1}, f"{method} {where} has {len(cells)} cells"
    return Row(method, address, about, expected, cells[len(columns)] if len(cells) > len(columns) else "-")


ROWS = [*read(PAGES, PEOPLE), *read(API, PEOPLE)]
TOKEN_ROWS = read(TOKENS, SCOPES)


def expected_of(row: Row, place: str) -> dict[str, str]:
    """What each person gets in a place: shop (of prod), bank (of prod too) or far (another cluster)."""
    away = {"shop": frozenset(), "bank": NARROW, "far": NARROW | OF_PROD}[place]
    return {who: row.away if who in away else cell for who, cell in row.expected}


PLACES = {"": ("shop",), "cluster": ("shop", "far"), "pod": ("shop", "bank", "far")}
# Whom a place makes a difference to, and root, to see that it is there.
SENT_IN = {"shop": PEOPLE, "bank": (*sorted(NARROW), "root"), "far": (*sorted(NARROW | OF_PROD), "root")}
