"""Every page and every fragment. Each state that a reader can be in has an address that can be shared."""

from django.urls import URLPattern, URLResolver, path

from decisions.web import account, bulk, cycles, decision, extenders, history, inbox, live, policy, settings

urlpatterns: list[URLPattern | URLResolver] = [
    path("", inbox.inbox, name="inbox"),
    path("login", account.Login.as_view(), name="login"),
    path("logout", account.Logout.as_view(), name="logout"),
    path("password", account.password, name="password"),
    path("live/<slug:what>", live.live, name="live"),
    path("bulk/", bulk.bulk, name="bulk"),
    path("bulk/summary", bulk.summary, name="bulk-summary"),
    path("bulk/apply", bulk.apply, name="bulk-apply"),
    path("d/<int:pk>/", decision.decision, name="decision"),
    path("d/<int:pk>/row", decision.row, name="row"),
    path("d/<int:pk>/why", decision.why, name="why"),
    path("d/<int:pk>/approve", decision.approve, name="approve"),
    path("d/<int:pk>/deny", decision.deny, name="deny"),
    path("d/<int:pk>/undo", decision.undo, name="undo"),
    path("d/<int:pk>/take-back", decision.take_back, name="take-back"),
    path("d/<int:pk>/override", decision.override, name="override"),
    path("d/<int:pk>/retry", decision.retry, name="retry"),
    path("d/<int:pk>/go-on", decision.go_on, name="go-on"),
    path("history/", history.history, name="history"),
    path("history/decisions.<str:kind>", history.export, name="export"),
    path("cycles/", cycles.cycles, name="cycles"),
    path("cycles/start", cycles.start, name="start-cycle"),
    path("cycles/<int:pk>/", cycles.cycle, name="cycle"),
    path("policy/", policy.policy, name="policy"),
    path("policy/check", policy.check, name="check-policy"),
    path("policy/store", policy.store, name="store-policy"),
    path("extenders/", extenders.extenders, name="extenders"),
    path("settings/", settings.settings, name="settings"),
]
